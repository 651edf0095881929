// The orders into which converters to GGUF bring rows of tensors, for reading and for writing.
#pragma once

#include <cstdint>
#include <vector>

#include "model/gguf_family.h"

namespace godwit {

// Row i as Hugging Face has it is row [i] of the file's tensor of `rows` rows. Empty: all are where
// they were, or that is no number of rows for such a tensor.
std::vector<int64_t> GgufRowOrder(GgufRows kind, const GgufShape& shape, int64_t rows);

}  // namespace godwit
