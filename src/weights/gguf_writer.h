// The GGUF format, written: version 3, little-endian, as gguf.h reads it. A header is made whole,
// since the sizes of all tensors are known; their bytes follow it, each at a multiple of
// kGgufAlignment.
//
// Pure data, no file is touched here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf.h"
#include "weights/gguf_types.h"

namespace godwit {

inline constexpr int64_t kGgufAlignment = 32;  // what the format has where no key says another
constexpr int64_t GgufAligned(int64_t bytes) {
  return (bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
}

// Keys and values in the order in which they are added. Names are distinct.
class GgufKeys {
 public:
  void U32(std::string_view key, int64_t value);  // 0 to 2^32 - 1
  void F32(std::string_view key, double value);
  void Bool(std::string_view key, bool value);
  void Text(std::string_view key, std::string_view value);
  void Texts(std::string_view key, std::span<const std::string> values);
  void I32s(std::string_view key, std::span<const int32_t> values);
  void F32s(std::string_view key, std::span<const float> values);
  void Bools(std::string_view key, const std::vector<bool>& values);
  void Bytes(std::string_view key, std::string_view values);  // a list of U8
  // As it lies in another file.
  void Copy(std::string_view key, const GgufValue& value);

  uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void Begin(std::string_view key, GgufType type);
  void BeginList(std::string_view key, GgufType type, uint64_t count);

  std::string bytes_;
  uint64_t count_ = 0;
};

struct NewGgufTensor {
  std::string name;
  std::vector<int64_t> shape;  // outermost first; rows of whole blocks of the type
  const GgufTensorType* type;

  int64_t bytes() const;
};

// All in front of the first tensor's bytes. Tensors follow in this order, each filled up with zeros
// to a multiple of kGgufAlignment. Throws Error(kUnsupported) for a name of more than the 64 bytes
// that other readers take.
std::string GgufHeader(const GgufKeys& keys, std::span<const NewGgufTensor> tensors);

}  // namespace godwit
