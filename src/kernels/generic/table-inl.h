// The table of one instruction set: its products and everything else, written over Vec.
// Include after one of vec/*.h.
#pragma once

#include "kernels/generic/activation-inl.h"
#include "kernels/generic/attention_state-inl.h"
#include "kernels/generic/convert-inl.h"
#include "kernels/generic/key_rotation-inl.h"
#include "kernels/generic/nibbles-inl.h"
#include "kernels/generic/norm-inl.h"
#include "kernels/generic/power_sum-inl.h"
#include "kernels/generic/quantize-inl.h"
#include "kernels/generic/signs-inl.h"
#include "kernels/generic/values_of_keys-inl.h"
#include "kernels/generic/weighted_rows-inl.h"

namespace godwit::kernels {
namespace {

struct Gemms {
  void (*f32)(const GemmArgs&) noexcept;
  void (*f16)(const GemmArgs&) noexcept;
  void (*bf16)(const GemmArgs&) noexcept;
  void (*i8)(const GemmArgs&) noexcept;
  void (*groups)(const GroupGemmArgs&) noexcept;
};
struct AttendTiles {
  void (*f32)(const AttendTileArgs&) noexcept;
  void (*f16)(const AttendTileArgs&) noexcept;
  void (*bf16)(const AttendTileArgs&) noexcept;
  void (*i8)(const AttendTileArgs&) noexcept;
  void (*i8_i8)(const AttendTileArgs&) noexcept;
  void (*scores)(const ScoreTileArgs&) noexcept;
  void (*signs)(const ScoreSignsArgs&) noexcept = ScoreSigns;
};

consteval KernelTable MakeTable(const Gemms& gemm, const AttendTiles& attend_tile,
                                int64_t product_bytes = 0) {
  // Lists of them are read from the front, so the last one is missing first.
  if (gemm.groups == nullptr || attend_tile.scores == nullptr) throw "a kernel is missing";
  return {.gemm_f32 = gemm.f32,
          .gemm_f16 = gemm.f16,
          .gemm_bf16 = gemm.bf16,
          .gemm_i8 = gemm.i8,
          .gemm_groups = gemm.groups,
          .largest_magnitude = LargestMagnitude,
          .quantize = Quantize,
          .attend_tile_f32 = attend_tile.f32,
          .attend_tile_f16 = attend_tile.f16,
          .attend_tile_bf16 = attend_tile.bf16,
          .attend_tile_i8 = attend_tile.i8,
          .attend_tile_i8_i8 = attend_tile.i8_i8,
          .values_of_keys = ValuesOfKeys,
          .widen_nibbles = WidenNibbles,
          .score_tile_i8 = attend_tile.scores,
          .score_signs = attend_tile.signs,
          .sum_powers = SumPowers,
          .merge_state = MergeState,
          .finish_state = FinishState,
          .rms_norm = RmsNorm,
          .layer_norm = LayerNorm,
          .rotate_half = RotateHalf,
          .hadamard = Hadamard,
          .centre_scores = CentreScores,
          .add_weighted_rows = AddWeightedRows,
          .dot_rows = DotRows,
          .dot_decayed_rows = DotDecayedRows,
          .add = AddRows,
          .multiply = Multiply,
          .clamp = Clamp,
          .times_sigmoid = TimesSigmoidRows,
          .decays = Decays,
          .silu = Silu,
          .gelu_erf = GeluErf,
          .gelu_tanh = GeluTanh,
          .relu = Relu,
          .bf16_to_f32 = Convert<BF16, float>,
          .f16_to_f32 = Convert<F16, float>,
          .f32_to_bf16 = Convert<float, BF16>,
          .f32_to_f16 = Convert<float, F16>,
          .product_bytes = product_bytes};
}

}  // namespace
}  // namespace godwit::kernels
