// The safetensors format, from bytes in memory. No file is touched here; the fuzzer uses that, too.
// Pure functions, thread-safe. Any departure from the format is an Error(kFormat) that lists every
// departure (where the JSON itself can be read).
//
// As strict as the reference implementation: a header of at most 100 MB, tensors that cover the
// data without holes, overlaps or a remainder. Stricter where two readers could disagree: duplicate
// names are refused, and so is any shape whose product overflows in some order of its dims. A
// header may hold at most 4 million JSON values, half a million tensors: 100 MB of `[],[],` would
// take gigabytes.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/weight_source.h"

namespace godwit {

struct SafetensorsContents {
  std::vector<TensorInfo> tensors;  // by ascending offset; their bytes are views into the input
  std::map<std::string, std::string, std::less<>> metadata;
};

// `file_name` goes into messages and into TensorInfo::file.
SafetensorsContents ParseSafetensors(std::span<const std::byte> file, const std::string& file_name);

}  // namespace godwit
