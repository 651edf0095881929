// The element types of tensors in GGUF files.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"
#include "weights/gguf_blocks.h"

namespace godwit {

// A type of which only this is known can be checked, but not read.
struct GgufTensorType {
  uint32_t number;
  std::string_view name;
  int64_t elements;  // of a block; 1: there are no blocks
  int64_t bytes;     // of a block
  std::optional<DType> dtype;
};

// nullptr: a number that the format does not use, or one of a later day.
const GgufTensorType* FindGgufTensorType(uint32_t number);
// The type of a name, such as "Q4_K"; nullptr: there is none of this name.
const GgufTensorType* FindGgufTensorType(std::string_view name);

}  // namespace godwit
