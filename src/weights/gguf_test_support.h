// For tests only: GGUF files, right or wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/gguf.h"

namespace godwit {

// The bytes of a number, little-endian.
template <typename T>
std::string Raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

inline std::string RawText(std::string_view text) {
  return Raw<uint64_t>(text.size()) + std::string(text);
}

// The header says what was added, unless a field is set otherwise.
class GgufBuilder {
 public:
  template <typename T>
  GgufBuilder& Key(std::string_view name, GgufType type, T value) {
    return RawKey(name, type, Raw(value));
  }
  GgufBuilder& U32(std::string_view name, uint32_t value) {
    return Key(name, GgufType::kU32, value);
  }
  GgufBuilder& F32(std::string_view name, float value) { return Key(name, GgufType::kF32, value); }
  GgufBuilder& Bool(std::string_view name, bool value) {
    return Key(name, GgufType::kBool, uint8_t{value});
  }
  GgufBuilder& Text(std::string_view name, std::string_view value) {
    return RawKey(name, GgufType::kString, RawText(value));
  }
  template <typename T>
  GgufBuilder& List(std::string_view name, GgufType type, const std::vector<T>& values) {
    std::string bytes = Raw(static_cast<uint32_t>(type)) + Raw<uint64_t>(values.size());
    for (const T& value : values) {
      if constexpr (std::is_convertible_v<T, std::string_view>) {
        bytes += RawText(value);
      } else {
        bytes += Raw(value);
      }
    }
    return RawKey(name, GgufType::kArray, bytes);
  }
  GgufBuilder& RawKey(std::string_view name, GgufType type, std::string_view value) {
    keys_ += RawText(name) + Raw(static_cast<uint32_t>(type)) + std::string(value);
    ++key_count;
    return *this;
  }

  // dims: outermost first. type: as the format numbers it. The bytes follow those of the tensors
  // before it, aligned.
  GgufBuilder& Tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                      std::string_view bytes) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    RawTensor(name, dims, type, data_.size());
    data_ += bytes;
    return *this;
  }
  // The entry alone.
  GgufBuilder& RawTensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                         uint64_t offset) {
    tensors_ += RawText(name) + Raw(static_cast<uint32_t>(dims.size()));
    for (size_t i = dims.size(); i-- > 0;) tensors_ += Raw(dims[i]);
    tensors_ += Raw(type) + Raw(offset);
    ++tensor_count;
    return *this;
  }

  std::string Bytes() const {
    std::string file =
        "GGUF" + Raw(version) + Raw(tensor_count) + Raw(key_count) + keys_ + tensors_;
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data_;
  }

  uint32_t version = 3;
  uint64_t tensor_count = 0;
  uint64_t key_count = 0;
  size_t alignment = 32;

 private:
  std::string keys_, tensors_, data_;
};

}  // namespace godwit
