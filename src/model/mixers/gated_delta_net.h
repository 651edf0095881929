// The forward pass of Mixer::kGatedDeltaNet.
#pragma once

#include <span>
#include <vector>

#include "model/mixers/mixer.h"
#include "ops/norm.h"
#include "ops/state_piece.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit {

struct GatedDeltaNetWeights {
  // [2 * value_heads, hidden], F32: rounded gates would forget otherwise. With
  // GatedDeltaNetSpec::narrow, [value_heads, hidden], of the update alone.
  Weight gates;
  Weight decay_down,
      decay_up;               // GatedDeltaNetSpec::narrow: [narrow, hidden], [decays, narrow], F32
  Weight z_down, z_up;        // likewise: [narrow, hidden], [values, narrow]
  std::vector<float> rates;   // [value_heads]: ops::DeltaNetWeights, as the biases
  std::vector<float> biases;  // [decays]
  ops::NormWeights norm;      // [value_dim]
};

// in: [convolved + values, hidden]: q, k and v of all heads, then z unless it is made of narrow
// matrices; from: [hidden, values]. taps: [taps, convolved]. normed, out: rows of the step, of
// hidden numbers.
void MixByGatedDeltaNet(const Exec& exec, const GatedDeltaNetSpec& spec,
                        const GatedDeltaNetWeights& weights, std::span<const float> taps,
                        const Weight& in, const Weight& from,
                        std::span<const ops::StatePiece> pieces, MatrixView<const float> normed,
                        MatrixView<float> out);

}  // namespace godwit
