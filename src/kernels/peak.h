// The limits of one core, for bench: how fast an instruction set multiplies, and reads memory.
//
// The multiplying kernels stay in registers, so only the units themselves limit them. Their rate is
// the one that a matrix product of the same instructions cannot exceed. Same rules as for the
// kernels of kernel_table.h: no threads, no memory taken, no exceptions.
#pragma once

#include <cstdint>

namespace godwit::kernels {

struct PeakTable {
  // Work for about `rounds` times a dozen instructions; return the multiply-adds done.
  int64_t (*f32)(int64_t rounds) noexcept;
  // The kernels of bf16, and of int8 with exact sums. Null where numbers are widened to f32
  // instead: the limit is that of f32 then.
  int64_t (*bf16)(int64_t rounds) noexcept;
  int64_t (*int8)(int64_t rounds) noexcept;

  // Reads all of `bytes`, a multiple of 4096, from 64-byte aligned floats. Returns some sum of
  // them, so that no compiler can leave the reading out.
  float (*read)(const float* p, int64_t bytes) noexcept;
};

}  // namespace godwit::kernels
