// The order of rows in memory: q, k and v behind one another, gate before up, and of rotary pairs
// first all first halves, then all second ones, however a checkpoint has them.
//
// Internal to src/model.
#pragma once

#include <cstdint>

#include "model/model_tensors.h"
#include "model/spec.h"

namespace godwit {

// Which row of all parts' rows the packed output is.
int64_t SourceRow(const DecoderSpec& spec, const LinearTensors& tensors, int64_t output);

// Of rows of heads whose rotary pairs lie side by side: the one that comes at `row`.
int64_t PairedRow(const DecoderSpec& spec, int64_t row);

}  // namespace godwit
