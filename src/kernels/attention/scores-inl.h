// Scores of int8 queries and the keys of an int8 tile, for callers that choose among keys and do
// not attend. Include after one of vec/*.h.
//
// KeyOperand is that of attention/quads-inl.h.
#pragma once

#include "kernels/attention/softmax-inl.h"
#include "kernels/gemm/rows-inl.h"

namespace godwit::kernels {
namespace {

// Products of a row with keys that are kExcess too high, in the bits of floats, to its scores.
template <int32_t kExcess>
GODWIT_INLINE void ScoreProducts(const ScoreTileArgs& args, int64_t row, const float* products) {
  const Int8Scores of{products, args.scale * args.q_scales[row] * kLog2E, args.k_scales,
                      kExcess == 0 ? 0 : kExcess * args.q_sums[row]};
  const float* const bias = args.bias == nullptr ? nullptr : args.bias + row * kTileTokens;
  float* const scores = args.scores + row * args.scores_stride;
  const TileSpan span = {0, static_cast<int32_t>(args.keys)};
  if (args.keys == kTileTokens) {
    ScoreKeys<true>(of, bias, span, 0, scores);
  } else {
    ScoreKeys<false>(of, bias, span, 0, scores);
  }
  for (int64_t j = WholeLanes(args.keys); j < kTileTokens; j += kLanes) {
    Store(scores + j, Set1(kMinusInfinity));
  }
}

template <class KeyOperand>
void ScoreTileI8(const ScoreTileArgs& args) noexcept {
  alignas(64) float products[kTileRows * kTileTokens];
  typename KeyOperand::Prepared buffer;
  const int64_t quads = (args.width + kQuad - 1) / kQuad;
  const uint8_t* ahead = args.next_k != nullptr ? args.next_k : args.k;
  for (int64_t first = 0; first < args.rows; first += kTileRows) {
    const int64_t rows = Lower(kTileRows, args.rows - first);
    const int8_t* q = args.q + first * args.q_stride;
    RunColumns<KeyOperand>(rows, kTileTokens,
                           {.a = KeyOperand::Prepare(q, args.q_stride, rows, quads, buffer),
                            .a_stride = KeyOperand::Stride(args.q_stride),
                            .w = args.k,
                            .w_stride = kTileTokens * kQuad,
                            .steps = quads,
                            .resume = false,
                            .out = products,
                            .out_stride = kTileTokens,
                            .ahead = ahead});
    ahead = args.k;
    for (int64_t r = 0; r < rows; ++r) {
      ScoreProducts<KeyOperand::kExcess>(args, first + r, products + r * kTileTokens);
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
