// Attention over pages of bf16 keys and values on tensor cores. Arguments and results are those of
// AttendPages (attend_pages.h), in the same order of tiles and stretches.
//
// A warp has 16 rows of a KV head. Both products take pages as they lie. A word of keys is a pair
// of dimensions of a token, and a word of values is a pair of tokens of a dimension. Each is a word
// of TileB. Weights leave the first product as TileC. Rounded to bf16, they enter the second one as
// TileA of the same thread. A key that a row does not see has the weight 0. A value that is not
// finite therefore makes NaN of all rows of its block of threads.
#pragma once

#include <cstdint>

#include "cuda/kernels/attend_pages.h"
#include "cuda/kernels/block.h"
#include "cuda/kernels/numbers.h"
#include "kernels/kernel_table.h"

namespace godwit::cuda {

struct AttendTiles {
  static constexpr const char* kName = "AttendTiles";
  static constexpr int kWarps = 4;
  static constexpr int kThreads = kWarps * kWarpThreads;
  static constexpr int kWarpRows = 16;
  static constexpr int kRows = kWarps * kWarpRows;
  static constexpr int kTile = static_cast<int>(kernels::kTileTokens);
  static constexpr int kTokenTiles = kTile / 8;
  static constexpr int kMaxDim = 128;  // of keys and of values
  static constexpr int kDimTiles = kMaxDim / 8;
  static constexpr int kLanes = static_cast<int>(kernels::kLaneFloats);
  // The grid is (stretches, KV heads, pieces of kRows rows).
  using Args = AttendPages::Args;
  // Rows are longer than their words, so that words which a warp reads at once lie in all banks.
  struct Shared {
    uint32_t keys[kMaxDim / 2][kTile + 8];
    uint32_t values[kTile / 2][kMaxDim + 8];
  };

  // Whether a model's heads are for this kernel. Others are for AttendPages.
  static constexpr bool Takes(DType dtype, int64_t head_dim, int64_t value_dim) {
    return dtype == DType::kBF16 && head_dim % 16 == 0 && head_dim <= kMaxDim &&
           value_dim % kLanes == 0 && value_dim <= kMaxDim;
  }

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    State<Block> state;
    block.ForThreadsAlone([&](int thread) { Clear(thread, state); });
    const int64_t first_row = block.z() * kRows;
    const int64_t last_row = first_row + kRows < args.rows ? first_row + kRows : args.rows;
    const KeySpan all = {KeySpan::Of(args, first_row).begin, KeySpan::Of(args, last_row - 1).end};
    for (int64_t i = 0; i < kStretchTiles; ++i) {
      const int64_t tile = (args.first_stretch + block.x()) * kStretchTiles + i;
      const int64_t token = tile * kTile;
      if (token >= all.end || token + kTile <= all.begin) continue;  // no row sees it
      Load(block, args, args.pages[tile] + block.y() * args.head_bytes, token, all);
      PerThread<Block, TileC> weights[kTokenTiles];
      Score(block, args, first_row, weights);
      Weigh(block, args, token, first_row, weights, state);
      AddValues(block, args, weights, state);
    }
    Store(block, args, first_row, state);
  }

 private:
  static constexpr float kInfinity = __builtin_huge_valf();
  static constexpr float kLog2E = 0x1.715476p+0f;

  // A thread's numbers of the two rows that it has sums of: g and g + 8 of its warp's 16.
  struct TwoRows {
    float of[2];
  };
  // Sums of weights, in the lanes of a state that are columns of the thread: [row][even or odd tile
  // of tokens][column].
  struct LaneSums {
    float of[2][2][2];
  };
  template <class Block>
  struct State {
    PerThread<Block, TwoRows> maxima;
    PerThread<Block, LaneSums> lanes;
    PerThread<Block, TileC> values[kDimTiles];
  };

  GODWIT_DEVICE static int RowOf(int thread, int half) {
    return thread / kWarpThreads * kWarpRows + thread % kWarpThreads / 4 + half * 8;
  }

  template <class Block>
  GODWIT_DEVICE static void Clear(int thread, State<Block>& state) {
    state.maxima[thread] = {{-kInfinity, -kInfinity}};
    state.lanes[thread] = {};
    GODWIT_UNROLL
    for (int tile = 0; tile < kDimTiles; ++tile) state.values[tile][thread] = {};
  }

  // Puts a tile into shared memory. Values of tokens that no row sees may be anything in a page,
  // and become zeros.
  template <class Block>
  GODWIT_DEVICE static void Load(const Block& block, const Args& args, const uint8_t* keys,
                                 int64_t token, const KeySpan& all) {
    Shared& shared = block.shared();
    const auto* const key_words = reinterpret_cast<const uint32_t*>(keys);
    const auto* const value_words = reinterpret_cast<const uint32_t*>(keys + args.value_offset);
    const int dim = static_cast<int>(args.value_dim);
    block.ForThreads([&](int thread) {
      for (int i = thread; i < args.head_dim / 2 * kTile; i += kThreads) {
        shared.keys[i / kTile][i % kTile] = key_words[i];
      }
      for (int i = thread; i < kTile / 2 * dim; i += kThreads) {
        const int64_t pair = token + i / dim * 2;
        const uint32_t seen = (all.Has(pair) ? 0xffffu : 0u) | (all.Has(pair + 1) ? ~0xffffu : 0u);
        shared.values[i / dim][i % dim] = value_words[i] & seen;
      }
    });
  }

  // Products of queries and keys.
  template <class Block>
  GODWIT_DEVICE static void Score(const Block& block, const Args& args, int64_t first_row,
                                  PerThread<Block, TileC>* scores) {
    const Shared& shared = block.shared();
    block.ForThreadsAlone([&](int thread) {
      GODWIT_UNROLL
      for (int tile = 0; tile < kTokenTiles; ++tile) scores[tile][thread] = {};
    });
    for (int64_t d = 0; d < args.head_dim; d += 16) {
      PerThread<Block, TileA> q;
      block.ForThreadsAlone([&](int thread) {
        const int64_t at = d + thread % 4 * 2;
        q[thread] = {{Query(block, args, first_row + RowOf(thread, 0), at),
                      Query(block, args, first_row + RowOf(thread, 1), at),
                      Query(block, args, first_row + RowOf(thread, 0), at + 8),
                      Query(block, args, first_row + RowOf(thread, 1), at + 8)}};
      });
      GODWIT_UNROLL
      for (int tile = 0; tile < kTokenTiles; ++tile) {
        PerThread<Block, TileB> k;
        block.ForThreadsAlone([&](int thread) {
          const int64_t pair = d / 2 + thread % 4;
          const int column = tile * 8 + thread % kWarpThreads / 4;
          k[thread] = {{shared.keys[pair][column], shared.keys[pair + 4][column]}};
        });
        block.MultiplyTiles(q, k, scores[tile]);
      }
    }
  }

  // Two numbers of a query, which are bf16 already.
  template <class Block>
  GODWIT_DEVICE static uint32_t Query(const Block& block, const Args& args, int64_t row,
                                      int64_t d) {
    if (row >= args.rows) return 0;
    const float* const q = args.q + (block.y() * args.rows + row) * args.q_stride + d;
    return Pair(q[0], q[1]);
  }
  GODWIT_DEVICE static uint32_t Pair(float low, float high) {
    return ToBF16(low).bits | static_cast<uint32_t>(ToBF16(high).bits) << 16;
  }

  // Turns scores into weights, brings the state to their maxima, and adds them to its lanes.
  template <class Block>
  GODWIT_DEVICE static void Weigh(const Block& block, const Args& args, int64_t token,
                                  int64_t first_row, PerThread<Block, TileC>* weights,
                                  State<Block>& state) {
    PerThread<Block, float> largest[2];
    block.ForThreadsAlone([&](int thread) {
      GODWIT_UNROLL
      for (int half = 0; half < 2; ++half) {
        const KeySpan span = KeySpan::Of(args, first_row + RowOf(thread, half));
        float mine = -kInfinity;
        GODWIT_UNROLL
        for (int tile = 0; tile < kTokenTiles; ++tile) {
          GODWIT_UNROLL
          for (int i = 0; i < 2; ++i) {
            float& score = weights[tile][thread].sums[half * 2 + i];
            score *= args.scale;
            if (args.score_cap != 0) score = args.score_cap * std::tanh(score / args.score_cap);
            score *= kLog2E;
            if (!span.Has(token + tile * 8 + thread % 4 * 2 + i)) score = -kInfinity;
            if (score > mine) mine = score;
          }
        }
        largest[half][thread] = mine;
      }
    });
    block.MaxOfQuads(largest[0]);
    block.MaxOfQuads(largest[1]);
    block.ForThreadsAlone([&](int thread) {
      GODWIT_UNROLL
      for (int half = 0; half < 2; ++half) {
        const KeySpan span = KeySpan::Of(args, first_row + RowOf(thread, half));
        float& maximum = state.maxima[thread].of[half];
        if (largest[half][thread] > maximum) {
          const float raised = std::ceil(largest[half][thread]);
          Rescale(thread, half, std::exp2(maximum - raised), state);
          maximum = raised;
        }
        const float reference = maximum == -kInfinity ? 0.0f : maximum;
        GODWIT_UNROLL
        for (int tile = 0; tile < kTokenTiles; ++tile) {
          GODWIT_UNROLL
          for (int i = 0; i < 2; ++i) {
            float& weight = weights[tile][thread].sums[half * 2 + i];
            const bool seen = span.Has(token + tile * 8 + thread % 4 * 2 + i);
            weight = seen ? ToFloat(ToBF16(std::exp2(weight - reference))) : 0.0f;
            state.lanes[thread].of[half][tile % 2][i] += weight;
          }
        }
      }
    });
  }

  template <class Block>
  GODWIT_DEVICE static void Rescale(int thread, int half, float factor, State<Block>& state) {
    GODWIT_UNROLL
    for (int i = 0; i < 2; ++i) {
      state.lanes[thread].of[half][0][i] *= factor;
      state.lanes[thread].of[half][1][i] *= factor;
      GODWIT_UNROLL
      for (int tile = 0; tile < kDimTiles; ++tile) {
        state.values[tile][thread].sums[half * 2 + i] *= factor;
      }
    }
  }

  // Adds the products of weights and values, 16 tokens at a time.
  template <class Block>
  GODWIT_DEVICE static void AddValues(const Block& block, const Args& args,
                                      const PerThread<Block, TileC>* weights, State<Block>& state) {
    const Shared& shared = block.shared();
    GODWIT_UNROLL
    for (int step = 0; step < kTile / 16; ++step) {
      PerThread<Block, TileA> w;
      block.ForThreadsAlone([&](int thread) {
        const float* const first = weights[2 * step][thread].sums;
        const float* const second = weights[2 * step + 1][thread].sums;
        w[thread] = {{Pair(first[0], first[1]), Pair(first[2], first[3]),
                      Pair(second[0], second[1]), Pair(second[2], second[3])}};
      });
      GODWIT_UNROLL
      for (int tile = 0; tile < kDimTiles; ++tile) {
        if (tile * 8 >= args.value_dim) break;
        PerThread<Block, TileB> v;
        block.ForThreadsAlone([&](int thread) {
          const int pair = step * 8 + thread % 4, d = tile * 8 + thread % kWarpThreads / 4;
          v[thread] = {{shared.values[pair][d], shared.values[pair + 4][d]}};
        });
        block.MultiplyTiles(w, v, state.values[tile]);
      }
    }
  }

  // The sums of a row lie in four threads. A state's first lanes are even tiles of tokens, eight
  // lanes each.
  template <class Block>
  GODWIT_DEVICE static void Store(const Block& block, const Args& args, int64_t first_row,
                                  State<Block>& state) {
    const int64_t floats = StateFloats(args.value_dim);
    block.ForThreads([&](int thread) {
      GODWIT_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int64_t row = first_row + RowOf(thread, half);
        if (row >= args.rows) continue;
        const int64_t head = block.x() * args.kv_heads + block.y();
        float* const to = args.states + (head * args.rows + row) * floats;
        for (int i = thread % 4; i < kLanes; i += 4) to[i] = 0;
        if (thread % 4 == 0) to[0] = state.maxima[thread].of[half];
        GODWIT_UNROLL
        for (int i = 0; i < 2; ++i) {
          const int column = thread % 4 * 2 + i;
          to[kLanes + column] = state.lanes[thread].of[half][0][i];
          to[kLanes + 8 + column] = state.lanes[thread].of[half][1][i];
          GODWIT_UNROLL
          for (int tile = 0; tile < kDimTiles; ++tile) {
            if (tile * 8 >= args.value_dim) break;
            to[kernels::kStateHeader + tile * 8 + column] =
                state.values[tile][thread].sums[half * 2 + i];
          }
        }
      }
    });
  }
};

}  // namespace godwit::cuda
