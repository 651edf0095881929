// Attention of query rows over pages of keys and values, for prompts and for single tokens, as
// ops/attention.h has it on the CPU.
//
// Keys come in tiles of kernels::kTileTokens, which lie as in the CPU's pages. A block of threads
// takes kRows rows of a KV head. It folds the tiles of one stretch (kStretchTiles tiles, cut by
// position) in ascending order. The result is a state for each row and stretch, in the form of
// kernels::AttendTileArgs. MergeStretches (merge_stretches.h) folds these in ascending order. So
// the bits depend neither on the number of rows, nor on how a prompt is cut. States over keys that
// lie elsewhere can be merged with them.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/numbers.h"
#include "kernels/kernel_table.h"

namespace godwit::cuda {

// Tiles of a stretch, as ops::kStretchTiles.
inline constexpr int64_t kStretchTiles = 16;
inline constexpr int64_t kStretchTokens = kStretchTiles * kernels::kTileTokens;

// The widest value, which shared memory holds for all rows of a block.
inline constexpr int64_t kMaxValueDim = 512;

// Floats of a state.
constexpr int64_t StateFloats(int64_t value_dim) {
  return kernels::kStateHeader + kernels::PadToLanes(value_dim);
}

// The keys that a row sees: positions of the text.
struct KeySpan {
  int64_t begin;
  int64_t end;
  GODWIT_DEVICE bool Has(int64_t position) const { return position >= begin && position < end; }

  // The span of a row of a KV head. Both ends rise from row to row.
  template <class Args>
  GODWIT_DEVICE static KeySpan Of(const Args& args, int64_t row) {
    const int64_t position = args.position + row / args.group;
    const int64_t oldest = position - args.window + 1;
    return {oldest > args.begin ? oldest : args.begin,
            position < args.end ? position + 1 : args.end};
  }
};

struct AttendPages {
  static constexpr const char* kName = "AttendPages";
  static constexpr int kThreads = 128;
  static constexpr int kRows = 8;
  static constexpr int kTile = static_cast<int>(kernels::kTileTokens);
  static constexpr int kLanes = static_cast<int>(kernels::kLaneFloats);
  static_assert(kRows * kLanes == kThreads && kThreads == 2 * kTile);

  // The grid is (stretches, KV heads, pieces of kRows rows).
  struct Args {
    const float* q;    // [kv_heads * rows, head_dim] in head-major order; for bf16, bf16 numbers
    int64_t q_stride;  // elements
    const uint8_t* const* pages;  // [tiles]: the layer's part of each page
    int64_t head_bytes;           // from one KV head to the next
    int64_t value_offset;         // from a head's keys to its values
    DType dtype;                  // F32, F16 or BF16
    int64_t kv_heads;
    int64_t rows;      // of a KV head: tokens * group
    int64_t group;     // heads that share a KV head
    int64_t position;  // of the first token, in the text
    int64_t begin;     // a row at p sees the keys of [begin, end), up to p, and
    int64_t end;       // of these those among the last `window`
    int64_t window;
    int64_t first_stretch;
    int64_t head_dim;
    int64_t value_dim;
    float scale;
    float score_cap;  // 0: none
    float* states;    // [stretches, kv_heads * rows, StateFloats(value_dim)]
  };
  struct Shared {
    float weights[kRows][kTile];  // scores, then weights
    float factors[kRows];         // that bring the sums to a new maximum
    float maxima[kRows];
    float lanes[kRows][kLanes];
    float values[kRows][kMaxValueDim];
  };

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    Shared& shared = block.shared();
    const int width = static_cast<int>(kernels::PadToLanes(args.value_dim));
    block.ForThreads([&](int thread) {
      shared.lanes[thread / kLanes][thread % kLanes] = 0;
      if (thread < kRows) shared.maxima[thread] = -kInfinity;
      for (int i = thread; i < kRows * width; i += kThreads)
        shared.values[i / width][i % width] = 0;
    });
    const int64_t first_row = block.z() * kRows;
    const int64_t stretch = args.first_stretch + block.x();
    const int64_t last_row = first_row + kRows < args.rows ? first_row + kRows : args.rows;
    const KeySpan all = {KeySpan::Of(args, first_row).begin, KeySpan::Of(args, last_row - 1).end};
    for (int64_t i = 0; i < kStretchTiles; ++i) {
      const int64_t tile = stretch * kStretchTiles + i, token = tile * kTile;
      if (token >= all.end || token + kTile <= all.begin) continue;  // no row sees it
      const uint8_t* const keys = args.pages[tile] + block.y() * args.head_bytes;
      FoldTile(block, args, keys, token, first_row, width);
    }
    Store(block, args, first_row, width);
  }

 private:
  static constexpr float kInfinity = __builtin_huge_valf();
  static constexpr float kLog2E = 0x1.715476p+0f;

  GODWIT_DEVICE static int64_t Depth(const Args& args) {
    return args.dtype == DType::kBF16 ? 2 : 1;
  }

  // The row's score of token j of a tile, in powers of two.
  GODWIT_DEVICE static float Score(const Args& args, const float* q, const uint8_t* keys, int j) {
    float sum = 0;
    if (args.dtype == DType::kBF16) {
      const auto* const words = reinterpret_cast<const uint32_t*>(keys);
      for (int64_t d = 0; d < args.head_dim; d += 2) {
        const uint32_t word = words[d / 2 * kTile + j];
        sum = std::fma(q[d], LowBF16(word), sum);
        if (d + 1 < args.head_dim) sum = std::fma(q[d + 1], HighBF16(word), sum);
      }
    } else {
      for (int64_t d = 0; d < args.head_dim; ++d) {
        sum = std::fma(q[d], ElementAt(args.dtype, keys, d * kTile + j), sum);
      }
    }
    float score = args.scale * sum;
    if (args.score_cap != 0) score = args.score_cap * std::tanh(score / args.score_cap);
    return score * kLog2E;
  }

  template <class Block>
  GODWIT_DEVICE static void FoldTile(const Block& block, const Args& args, const uint8_t* keys,
                                     int64_t token, int64_t first_row, int width) {
    Shared& shared = block.shared();
    // Scores: a thread has one key, and every second row.
    block.ForThreads([&](int thread) {
      const int j = thread % kTile;
      for (int row = thread / kTile; row < kRows; row += 2) {
        if (first_row + row >= args.rows) break;
        const int64_t of = block.y() * args.rows + first_row + row;
        const bool seen = KeySpan::Of(args, first_row + row).Has(token + j);
        shared.weights[row][j] =
            seen ? Score(args, args.q + of * args.q_stride, keys, j) : -kInfinity;
      }
    });
    for (int first = 0; first < kRows; first += kThreads / kWarpThreads) {
      Weigh(block, args, token, first_row, first);
    }
    // Sums of the weights, in the lanes of a state, and of the values.
    block.ForThreads([&](int thread) {
      const int row = thread / kLanes;
      if (first_row + row >= args.rows) return;
      float& lane = shared.lanes[row][thread % kLanes];
      lane *= shared.factors[row];
      for (int j = thread % kLanes; j < kTile; j += kLanes) lane += shared.weights[row][j];
    });
    block.ForThreads([&](int thread) {
      for (int i = thread; i < kRows * width; i += kThreads) {
        const int row = i / width, d = i % width;
        if (first_row + row >= args.rows) break;
        AddValues(args, keys + args.value_offset, KeySpan::Of(args, first_row + row), token, d,
                  shared.weights[row], shared.factors[row], shared.values[row][d]);
      }
    });
  }

  // Turns the scores of one row for each warp, from row `first` on, into weights.
  template <class Block>
  GODWIT_DEVICE static void Weigh(const Block& block, const Args& args, int64_t token,
                                  int64_t first_row, int first) {
    Shared& shared = block.shared();
    PerThread<Block, float> largest;
    block.ForThreads([&](int thread) {
      const int row = first + thread / kWarpThreads, j = thread % kWarpThreads;
      largest[thread] = -kInfinity;
      if (first_row + row >= args.rows) return;
      const float a = shared.weights[row][j], b = shared.weights[row][j + kWarpThreads];
      largest[thread] = Larger(Larger(-kInfinity, a), b);
    });
    block.MaxOfWarps(largest);
    block.ForThreads([&](int thread) {
      const int row = first + thread / kWarpThreads;
      if (first_row + row >= args.rows) return;
      const float before = shared.maxima[row];
      const float maximum = largest[thread] > before ? std::ceil(largest[thread]) : before;
      const float reference = maximum == -kInfinity ? 0.0f : maximum;
      const KeySpan span = KeySpan::Of(args, first_row + row);
      for (int j = thread % kWarpThreads; j < kTile; j += kWarpThreads) {
        const float weight = std::exp2(shared.weights[row][j] - reference);
        const float stored = args.dtype == DType::kBF16 ? ToFloat(ToBF16(weight)) : weight;
        shared.weights[row][j] = span.Has(token + j) ? stored : 0.0f;
      }
      if (thread % kWarpThreads == 0) {
        shared.factors[row] = maximum == before ? 1.0f : std::exp2(before - maximum);
      }
    });
    block.ForThreads([&](int thread) {
      const int row = first + thread / kWarpThreads;
      if (thread % kWarpThreads != 0 || first_row + row >= args.rows) return;
      if (largest[thread] > shared.maxima[row]) shared.maxima[row] = std::ceil(largest[thread]);
    });
  }

  GODWIT_DEVICE static float Larger(float a, float b) { return b > a ? b : a; }

  // Keys outside the span are not read: what lies there may be anything.
  GODWIT_DEVICE static void AddValues(const Args& args, const uint8_t* values, const KeySpan& span,
                                      int64_t token, int d, const float* weights, float factor,
                                      float& sum) {
    const int64_t depth = Depth(args);
    float x = sum * factor;
    for (int j = 0; j < kTile; ++j) {
      if (!span.Has(token + j)) continue;
      const int64_t at = kernels::ValueAt(depth, args.value_dim, j, d);
      x = std::fma(weights[j], ElementAt(args.dtype, values, at), x);
    }
    sum = x;
  }

  template <class Block>
  GODWIT_DEVICE static void Store(const Block& block, const Args& args, int64_t first_row,
                                  int width) {
    const Shared& shared = block.shared();
    const int64_t floats = StateFloats(args.value_dim);
    block.ForThreads([&](int thread) {
      for (int i = thread; i < kRows * static_cast<int>(floats); i += kThreads) {
        const int row = i / static_cast<int>(floats), at = i % static_cast<int>(floats);
        if (first_row + row >= args.rows) break;
        const int64_t head = block.x() * args.kv_heads + block.y();
        float* const state = args.states + (head * args.rows + first_row + row) * floats;
        constexpr int kHeader = static_cast<int>(kernels::kStateHeader);
        state[at] = at == 0                ? shared.maxima[row]
                    : at < kLanes          ? 0.0f
                    : at < kHeader         ? shared.lanes[row][at - kLanes]
                    : at < kHeader + width ? shared.values[row][at - kHeader]
                                           : 0.0f;
      }
    });
  }
};

}  // namespace godwit::cuda
