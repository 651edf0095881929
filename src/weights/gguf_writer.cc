#include "weights/gguf_writer.h"

#include <cassert>
#include <utility>

#include "base/error.h"
#include "base/quote.h"

namespace godwit {
namespace {

constexpr uint32_t kVersion = 3;
constexpr size_t kMaxTensorName = 63;  // and a zero behind it, in the format's own library

template <typename T>
void Put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutText(std::string& bytes, std::string_view text) {
  Put<uint64_t>(bytes, text.size());
  bytes += text;
}

}  // namespace

void GgufKeys::Begin(std::string_view key, GgufType type) {
  PutText(bytes_, key);
  Put(bytes_, static_cast<uint32_t>(type));
  ++count_;
}

void GgufKeys::BeginList(std::string_view key, GgufType type, uint64_t count) {
  Begin(key, GgufType::kArray);
  Put(bytes_, static_cast<uint32_t>(type));
  Put(bytes_, count);
}

void GgufKeys::U32(std::string_view key, int64_t value) {
  assert(std::in_range<uint32_t>(value));
  Begin(key, GgufType::kU32);
  Put(bytes_, static_cast<uint32_t>(value));
}

void GgufKeys::F32(std::string_view key, double value) {
  Begin(key, GgufType::kF32);
  Put(bytes_, static_cast<float>(value));
}

void GgufKeys::Bool(std::string_view key, bool value) {
  Begin(key, GgufType::kBool);
  Put(bytes_, static_cast<uint8_t>(value));
}

void GgufKeys::Text(std::string_view key, std::string_view value) {
  Begin(key, GgufType::kString);
  PutText(bytes_, value);
}

void GgufKeys::Texts(std::string_view key, std::span<const std::string> values) {
  BeginList(key, GgufType::kString, values.size());
  for (const std::string& value : values) PutText(bytes_, value);
}

void GgufKeys::I32s(std::string_view key, std::span<const int32_t> values) {
  BeginList(key, GgufType::kI32, values.size());
  for (const int32_t value : values) Put(bytes_, value);
}

void GgufKeys::F32s(std::string_view key, std::span<const float> values) {
  BeginList(key, GgufType::kF32, values.size());
  for (const float value : values) Put(bytes_, value);
}

void GgufKeys::Bools(std::string_view key, const std::vector<bool>& values) {
  BeginList(key, GgufType::kBool, values.size());
  for (const bool value : values) Put(bytes_, static_cast<uint8_t>(value));
}

void GgufKeys::Bytes(std::string_view key, std::string_view values) {
  BeginList(key, GgufType::kU8, values.size());
  bytes_ += values;
}

void GgufKeys::Copy(std::string_view key, const GgufValue& value) {
  value.list ? BeginList(key, value.type, value.count) : Begin(key, value.type);
  bytes_.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

int64_t NewGgufTensor::bytes() const {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements / type->elements * type->bytes;
}

std::string GgufHeader(const GgufKeys& keys, std::span<const NewGgufTensor> tensors) {
  std::string header = "GGUF";
  Put(header, kVersion);
  Put<uint64_t>(header, tensors.size());
  Put(header, keys.count());
  header += keys.bytes();
  int64_t offset = 0;
  for (const NewGgufTensor& tensor : tensors) {
    if (tensor.name.size() > kMaxTensorName) {
      Throw(ErrorKind::kUnsupported, "tensor {}: expected a name of up to {} bytes in GGUF",
            Quote(tensor.name), kMaxTensorName);
    }
    PutText(header, tensor.name);
    Put(header, static_cast<uint32_t>(tensor.shape.size()));
    // The innermost dimension comes first.
    for (size_t i = tensor.shape.size(); i-- > 0;) {
      Put(header, static_cast<uint64_t>(tensor.shape[i]));
    }
    Put(header, tensor.type->number);
    Put(header, static_cast<uint64_t>(offset));
    offset += GgufAligned(tensor.bytes());
  }
  header.resize(GgufAligned(std::ssize(header)));
  return header;
}

}  // namespace godwit
