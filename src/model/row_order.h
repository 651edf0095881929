// The order of rows in memory, whatever a checkpoint has: q, k and v behind one another, gate
// before up, gates of attention last. All first halves of rotary pairs come first, then all second
// ones.
//
// Internal to src/model.
#pragma once

#include <cstdint>

#include "model/model_tensors.h"
#include "model/spec.h"

namespace godwit {

// The row among all parts' rows that becomes the packed output.
int64_t SourceRow(const DecoderSpec& spec, const LinearTensors& tensors, int64_t output);

// The row that comes at `row`, among rows of heads whose rotary pairs lie side by side.
int64_t PairedRow(const DecoderSpec& spec, int64_t row);

}  // namespace godwit
