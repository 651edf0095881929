// The GGUF format, from bytes in memory. No file is touched here; the fuzzer uses that, too. Pure
// functions, thread-safe. Any departure from the format is an Error(kFormat) that names the place,
// what was expected and what was found.
//
// Versions 2 and 3, little-endian. Nothing is trusted. A count is compared with the bytes that are
// left before anything is done with it, and no list is copied. Tensors must be aligned, inside the
// file and apart from each other. Stricter than the reference implementation where two readers
// could disagree (keys and names twice, lists in lists, dimensions of 0).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/weight_source.h"

namespace godwit {

// As in the file.
enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

std::string_view Name(GgufType type);

// A key's value, or a list of values.
struct GgufValue {
  GgufType type = GgufType::kU8;  // of a list: of its elements
  bool list = false;
  uint64_t count = 1;
  // The bytes of the elements, one after another. Text has its length in front, in 8 bytes.
  std::span<const std::byte> bytes;
};

using GgufValues = std::map<std::string, GgufValue, std::less<>>;

struct GgufContents {
  GgufValues values;                // views into the input
  std::vector<TensorInfo> tensors;  // by ascending offset; their bytes are views into the input
};

// Throws for a file that does not begin as all of them do.
void CheckGgufMagic(std::span<const std::byte> file, const std::string& file_name);

// `file_name` goes into messages and into TensorInfo::file.
GgufContents ParseGguf(std::span<const std::byte> file, const std::string& file_name);

}  // namespace godwit
