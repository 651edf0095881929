// One tensor's entry in a safetensors header: {"dtype", "shape", "data_offsets"}, checked.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/problem_list.h"
#include "weights/weight_source.h"

namespace godwit {

struct SafetensorsEntry {
  TensorInfo info;     // name, dtype, dtype_name and shape; the rest is the caller's
  uint64_t begin = 0;  // in the data that follows the header
  uint64_t end = 0;
};

// The entry if it is consistent in itself and lies within `data_bytes`; else nullopt, and what is
// wrong with it has been added to `problems`.
std::optional<SafetensorsEntry> ReadSafetensorsEntry(const std::string& name,
                                                     const nlohmann::json& entry,
                                                     uint64_t data_bytes, ProblemList& problems);

}  // namespace godwit
