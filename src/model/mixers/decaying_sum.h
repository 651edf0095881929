// The forward pass of Mixer::kDecayingSum.
#pragma once

#include <span>

#include "model/mixers/mixer.h"
#include "ops/linear_rows.h"
#include "ops/state_piece.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit {

// in: [width, hidden]; from: [hidden, width]. normed, out: rows of the step, of hidden numbers.
void MixByDecayingSum(const Exec& exec, const DecayingSumSpec& spec, const Weight& in,
                      const Weight& from, std::span<const ops::StatePiece> pieces,
                      const ops::LinearRows& normed, MatrixView<float> out);

}  // namespace godwit
