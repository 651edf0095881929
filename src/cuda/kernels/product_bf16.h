// The product of bf16 rows with a packed bf16 weight (kernels/packing.h), in two kernels of the
// same bits: for few rows and for many.
//
// The sum over k is cut into parts of kPartDepth. A part is one chain of fused multiply-adds from
// 0, k ascending. The parts are added in ascending order, then the bias. So the bits depend neither
// on the number of rows, nor on the kernel, and threads may share a long sum.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/numbers.h"
#include "kernels/packing.h"

namespace godwit::cuda {

struct ProductBF16Args {
  const uint32_t* a;  // [rows, k] bf16 in pairs, with a zero behind an odd k
  int64_t a_stride;   // pairs between rows
  const uint32_t* w;  // packed panels: [panel][k / 2][column] pairs
  const float* bias;  // [columns] or null
  float* out;         // [rows, columns]
  int64_t out_stride;
  int64_t rows;
  int64_t k;
  int64_t columns;

  GODWIT_DEVICE int64_t pairs() const { return (k + 1) / 2; }
  GODWIT_DEVICE void Set(int64_t row, int64_t column, float sum) const {
    if (row >= rows || column >= columns) return;
    out[row * out_stride + column] = bias != nullptr ? sum + bias[column] : sum;
  }
};

inline constexpr int64_t kPartDepth = 256;
inline constexpr int64_t kPartPairs = kPartDepth / 2;
inline constexpr int kPanel = static_cast<int>(kernels::kPanelColumns);

GODWIT_DEVICE float AddPair(uint32_t a, uint32_t w, float sum) {
  sum = std::fma(LowBF16(a), LowBF16(w), sum);
  return std::fma(HighBF16(a), HighBF16(w), sum);
}

// A block computes kRows rows of a panel. Its threads are a column each, in kLanes lanes. A lane
// adds up one part of the sum.
struct ProductBF16Few {
  static constexpr const char* kName = "ProductBF16Few";
  static constexpr int kLanes = 8;
  static constexpr int kRows = 4;
  static constexpr int kThreads = kLanes * kPanel;
  using Args = ProductBF16Args;
  struct Shared {
    float parts[kLanes][kRows][kPanel];
  };
  struct Sums {
    float of_row[kRows];
  };

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    Shared& shared = block.shared();
    const int64_t pairs = args.pairs(), first_row = block.y() * kRows;
    const uint32_t* const w = args.w + block.x() * pairs * kPanel;
    PerThread<Block, float> total;
    block.ForThreads([&](int thread) { total[thread] = 0; });
    for (int64_t first = 0; first < pairs; first += kLanes * kPartPairs) {
      block.ForThreads([&](int thread) {
        const int lane = thread / kPanel, column = thread % kPanel;
        const Sums sums = Part(args, w + column, first + lane * kPartPairs, first_row);
        GODWIT_UNROLL
        for (int row = 0; row < kRows; ++row) shared.parts[lane][row][column] = sums.of_row[row];
      });
      block.ForThreads([&](int thread) {
        const int row = thread / kPanel, column = thread % kPanel;
        if (row >= kRows) return;
        for (int lane = 0; lane < kLanes && first + lane * kPartPairs < pairs; ++lane) {
          total[thread] += shared.parts[lane][row][column];
        }
      });
    }
    block.ForThreads([&](int thread) {
      const int row = thread / kPanel;
      if (row >= kRows) return;
      args.Set(first_row + row, block.x() * kPanel + thread % kPanel, total[thread]);
    });
  }

 private:
  // The part from pair `begin` on of the sums of one column. w: of the column.
  GODWIT_DEVICE static Sums Part(const Args& args, const uint32_t* w, int64_t begin,
                                 int64_t first_row) {
    Sums sums = {};
    const int64_t pairs = args.pairs();
    const int64_t end = begin + kPartPairs < pairs ? begin + kPartPairs : pairs;
    const uint32_t* const a = args.a + first_row * args.a_stride;
    for (int64_t pair = begin; pair < end; ++pair) {
      const uint32_t weights = w[pair * kPanel];
      GODWIT_UNROLL
      for (int row = 0; row < kRows; ++row) {
        if (first_row + row >= args.rows) break;
        sums.of_row[row] = AddPair(a[row * args.a_stride + pair], weights, sums.of_row[row]);
      }
    }
    return sums;
  }
};

// A block computes a tile of kRows rows and a panel, from pieces of both in shared memory. A
// thread has 4 x 4 outputs, in rows and columns 16 apart.
struct ProductBF16Many {
  static constexpr const char* kName = "ProductBF16Many";
  static constexpr int kSide = 16;
  static constexpr int kEach = 4;
  static constexpr int kRows = kSide * kEach;
  static constexpr int kThreads = kSide * kSide;
  static constexpr int kPiecePairs = 16;
  static_assert(kPanel == kRows && kPartPairs % kPiecePairs == 0);
  using Args = ProductBF16Args;
  struct Shared {
    uint32_t a[kRows][kPiecePairs + 1];  // one more, so that a column's words lie in all banks
    uint32_t w[kPiecePairs][kPanel];
  };
  struct Sums {
    float of[kEach][kEach];
  };

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    Shared& shared = block.shared();
    const int64_t pairs = args.pairs(), first_row = block.x() * kRows;
    PerThread<Block, Sums> part, total;
    block.ForThreads([&](int thread) { part[thread] = total[thread] = {}; });
    for (int64_t first = 0; first < pairs; first += kPiecePairs) {
      block.ForThreads(
          [&](int thread) { Load(args, block.y(), first_row, first, thread, shared); });
      const bool ends_part =
          (first + kPiecePairs) % kPartPairs == 0 || first + kPiecePairs >= pairs;
      block.ForThreads([&](int thread) {
        AddPiece(shared, thread, part[thread]);
        if (ends_part) Move(part[thread], total[thread]);
      });
    }
    block.ForThreads([&](int thread) {
      GODWIT_UNROLL
      for (int i = 0; i < kEach; ++i) {
        GODWIT_UNROLL
        for (int j = 0; j < kEach; ++j) {
          args.Set(first_row + thread / kSide + i * kSide,
                   block.y() * kPanel + thread % kSide + j * kSide, total[thread].of[i][j]);
        }
      }
    });
  }

 private:
  // Words behind the end are zeros, which leave a sum as it is.
  GODWIT_DEVICE static void Load(const Args& args, int64_t panel, int64_t first_row, int64_t first,
                                 int thread, Shared& shared) {
    const int64_t pairs = args.pairs();
    for (int i = thread; i < kRows * kPiecePairs; i += kThreads) {
      const int64_t row = first_row + i / kPiecePairs, pair = first + i % kPiecePairs;
      const bool inside = row < args.rows && pair < pairs;
      shared.a[i / kPiecePairs][i % kPiecePairs] = inside ? args.a[row * args.a_stride + pair] : 0;
    }
    for (int i = thread; i < kPiecePairs * kPanel; i += kThreads) {
      const int64_t pair = first + i / kPanel;
      shared.w[i / kPanel][i % kPanel] =
          pair < pairs ? args.w[(panel * pairs + pair) * kPanel + i % kPanel] : 0;
    }
  }

  GODWIT_DEVICE static void AddPiece(const Shared& shared, int thread, Sums& part) {
    for (int pair = 0; pair < kPiecePairs; ++pair) {
      GODWIT_UNROLL
      for (int i = 0; i < kEach; ++i) {
        const uint32_t a = shared.a[thread / kSide + i * kSide][pair];
        GODWIT_UNROLL
        for (int j = 0; j < kEach; ++j) {
          part.of[i][j] = AddPair(a, shared.w[pair][thread % kSide + j * kSide], part.of[i][j]);
        }
      }
    }
  }

  GODWIT_DEVICE static void Move(Sums& part, Sums& total) {
    GODWIT_UNROLL
    for (int i = 0; i < kEach; ++i) {
      GODWIT_UNROLL
      for (int j = 0; j < kEach; ++j) {
        total.of[i][j] += part.of[i][j];
        part.of[i][j] = 0;
      }
    }
  }
};

}  // namespace godwit::cuda
