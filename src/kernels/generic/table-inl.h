// The table of one instruction set: its matrix products and everything that is written over Vec.
// Include after one of vec/*.h.
#pragma once

#include "kernels/generic/activation-inl.h"
#include "kernels/generic/attention-inl.h"
#include "kernels/generic/convert-inl.h"
#include "kernels/generic/norm-inl.h"
#include "kernels/generic/quantize-inl.h"

namespace godwit::kernels {
namespace {

using GemmFunction = void (*)(const GemmArgs&) noexcept;

constexpr KernelTable MakeTable(GemmFunction f32, GemmFunction f16, GemmFunction bf16,
                                GemmFunction i8) {
  return {.gemm_f32 = f32,
          .gemm_f16 = f16,
          .gemm_bf16 = bf16,
          .gemm_i8 = i8,
          .largest_magnitude = LargestMagnitude,
          .quantize = Quantize,
          .attend_tile_f32 = AttendTile<float>,
          .attend_tile_f16 = AttendTile<F16>,
          .attend_tile_bf16 = AttendTile<BF16>,
          .attend_tile_i8 = AttendTile<int8_t>,
          .merge_state = MergeState,
          .finish_state = FinishState,
          .rms_norm = RmsNorm,
          .layer_norm = LayerNorm,
          .rotate_half = RotateHalf,
          .add = AddRows,
          .multiply = Multiply,
          .clamp = Clamp,
          .silu = Silu,
          .gelu_erf = GeluErf,
          .gelu_tanh = GeluTanh,
          .relu = Relu,
          .bf16_to_f32 = Convert<BF16, float>,
          .f16_to_f32 = Convert<F16, float>,
          .f32_to_bf16 = Convert<float, BF16>,
          .f32_to_f16 = Convert<float, F16>};
}

}  // namespace
}  // namespace godwit::kernels
