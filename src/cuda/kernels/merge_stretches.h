// Attention states of stretches, folded in ascending order into one for each row, and finished.
// The operations are those of kernels::merge_state and kernels::finish_state.
#pragma once

#include <cstdint>

#include "cuda/kernels/attend_pages.h"
#include "cuda/kernels/block.h"
#include "kernels/kernel_table.h"

namespace godwit::cuda {

// A block merges the states of one row, in head-major order.
struct MergeStretches {
  static constexpr const char* kName = "MergeStretches";
  static constexpr int kThreads = 128;
  struct Args {
    const float* states;  // [stretches, rows of all KV heads, StateFloats(value_dim)]
    int64_t stretches;
    int64_t all_rows;
    int64_t rows;   // of a KV head: tokens * group
    int64_t group;  // heads that share a KV head
    int64_t value_dim;
    const float* before;       // [all_rows, StateFloats(value_dim)]: states to begin with, or null
    const float* sink_logits;  // [heads], or null
    float* merged;             // [all_rows, StateFloats(value_dim)]: the sums, or null: see out
    float* out;                // [tokens, heads * value_dim]
    int64_t out_stride;
  };
  struct Shared {
    float state[kernels::kStateHeader + kMaxValueDim];
  };
  // How two states join.
  struct Joint {
    bool skip;
    bool was_empty;
    float maximum;
    float mine;
    float theirs;
  };

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    float* const state = block.shared().state;
    const int64_t floats = StateFloats(args.value_dim);
    const float* const before = args.before == nullptr ? nullptr : args.before + block.x() * floats;
    block.ForThreads([&](int thread) {
      for (int64_t i = thread; i < floats; i += kThreads) {
        state[i] = before != nullptr ? before[i] : i == 0 ? -kInfinity : 0.0f;
      }
    });
    for (int64_t stretch = 0; stretch < args.stretches; ++stretch) {
      const float* const from = args.states + (stretch * args.all_rows + block.x()) * floats;
      PerThread<Block, Joint> joint;
      block.ForThreads(
          [&](int thread) { joint[thread] = Join(state[0], Total(state), from[0], Total(from)); });
      block.ForThreads([&](int thread) {
        const Joint& how = joint[thread];
        if (how.skip) return;
        for (int64_t i = kernels::kStateLanes + thread; i < floats; i += kThreads) {
          state[i] = how.was_empty ? from[i] : state[i] * how.mine + from[i] * how.theirs;
        }
        if (thread == 0) state[0] = how.maximum;
      });
    }
    if (args.merged != nullptr) {
      block.ForThreads([&](int thread) {
        for (int64_t i = thread; i < floats; i += kThreads) {
          args.merged[block.x() * floats + i] = state[i];
        }
      });
      return;
    }
    Finish(block, args, state);
  }

 private:
  static constexpr float kInfinity = __builtin_huge_valf();

  GODWIT_DEVICE static float Total(const float* state) {
    float total = 0;
    for (int64_t i = 0; i < kernels::kLaneFloats; ++i) total += state[kernels::kStateLanes + i];
    return total;
  }

  GODWIT_DEVICE static Joint Join(float mine, float my_total, float theirs, float their_total) {
    if (their_total == 0.0f) return {true, false, mine, 1.0f, 0.0f};
    if (my_total == 0.0f) return {false, true, theirs, 0.0f, 1.0f};
    const float maximum = theirs > mine ? theirs : mine;
    return {false, false, maximum, std::exp2(mine - maximum), std::exp2(theirs - maximum)};
  }

  // A sink logit is a key of that score without a value.
  template <class Block>
  GODWIT_DEVICE static void Finish(const Block& block, const Args& args, const float* state) {
    block.ForThreads([&](int thread) {
      const int64_t row = block.x() % args.rows;
      const int64_t head = block.x() / args.rows * args.group + row % args.group;
      float total = Total(state), factor = 1;
      if (args.sink_logits != nullptr) {
        const double score = double{args.sink_logits[head]} * 1.4426950408889634;
        const double ceiling = std::ceil(score);
        const float own = static_cast<float>(std::exp2(score - ceiling));
        const bool none = ceiling == -double{kInfinity};
        const Joint how = Join(state[0], total, static_cast<float>(ceiling), none ? 0.0f : own);
        if (how.was_empty) total = 0;  // and the values stay zeros
        if (!how.skip && !how.was_empty) {
          factor = how.mine;
          total = Rescaled(state, how, own);
        }
      }
      float* const out = args.out + row / args.group * args.out_stride + head * args.value_dim;
      for (int64_t d = thread; d < args.value_dim; d += kThreads) {
        out[d] = total == 0.0f ? 0.0f : state[kernels::kStateHeader + d] * factor / total;
      }
    });
  }

  // The total of the lanes after a key without value has joined, whose weight enters the first one.
  GODWIT_DEVICE static float Rescaled(const float* state, const Joint& how, float own) {
    float total = 0;
    for (int64_t i = 0; i < kernels::kLaneFloats; ++i) {
      const float theirs = i == 0 ? own * how.theirs : 0.0f;
      total += state[kernels::kStateLanes + i] * how.mine + theirs;
    }
    return total;
  }
};

}  // namespace godwit::cuda
