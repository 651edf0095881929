// Rows of keys and values, on their way into pages: rounded, and put where attention reads them. A
// block stores one token of one KV head. The bytes are those of ops::StoreRow on the CPU.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/numbers.h"
#include "kernels/kernel_table.h"

namespace godwit::cuda {

struct StoreRows {
  static constexpr const char* kName = "StoreRows";
  static constexpr int kThreads = 64;
  // The grid is (tokens, KV heads).
  struct Args {
    const float* k;  // [kv_heads * tokens, head_dim] in head-major order, rotated
    int64_t k_stride;
    const float* v;  // [tokens, kv_heads * head_dim]
    int64_t v_stride;
    int64_t tokens;
    int64_t position;       // of the first token, in the text
    uint8_t* const* pages;  // [tiles]: the layer's part of each page
    int64_t head_bytes;     // from one KV head to the next
    int64_t value_offset;   // from a head's keys to its values
    DType dtype;            // F32, F16 or BF16
    int64_t head_dim;
    int32_t* out_of_range;  // becomes 1 if a finite number is beyond the range of F16
  };
  struct Shared {};

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    block.ForThreads([&](int thread) {
      const int64_t token = block.x(), head = block.y();
      const int64_t place = args.position + token, slot = place % kernels::kTileTokens;
      uint8_t* const keys = args.pages[place / kernels::kTileTokens] + head * args.head_bytes;
      uint8_t* const values = keys + args.value_offset;
      const float* const k = args.k + (head * args.tokens + token) * args.k_stride;
      const float* const v = args.v + token * args.v_stride + head * args.head_dim;
      const int64_t depth = kernels::KvDepth(args.dtype);
      // Zeros lie behind a key, up to its depth, and behind a value.
      const int64_t key_end = (args.head_dim + depth - 1) / depth * depth;
      for (int64_t d = thread; d < kernels::PadToLanes(args.head_dim); d += kThreads) {
        const bool inside = d < args.head_dim;
        if (d < key_end) {
          Store(args, inside ? k[d] : 0.0f, kernels::KeyAt(depth, d, slot), keys);
        }
        Store(args, inside ? v[d] : 0.0f, kernels::ValueAt(depth, args.head_dim, slot, d), values);
      }
    });
  }

 private:
  GODWIT_DEVICE static void Store(const Args& args, float x, int64_t at, uint8_t* to) {
    if (args.dtype == DType::kF32) {
      reinterpret_cast<float*>(to)[at] = x;
    } else if (args.dtype == DType::kBF16) {
      reinterpret_cast<BF16*>(to)[at] = ToBF16(x);
    } else {
      const uint16_t half = FloatToHalf(x);
      reinterpret_cast<uint16_t*>(to)[at] = half;
      if ((half & 0x7fffu) == 0x7c00u && std::fabs(x) <= kLargestFloat) *args.out_of_range = 1;
    }
  }
};

}  // namespace godwit::cuda
