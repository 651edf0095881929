// The product of int8 rows with a packed weight of groups, for every format of
// kernels::GroupGemmArgs (kernels/kernel_table.h). There are two kernels: for few rows and, on
// tensor cores, for many. Integers are exact, and chains of floats have the order of the CPU. So
// the bits are those of the CPU.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/numbers.h"
#include "cuda/kernels/product_tiles.h"
#include "kernels/group_packing.h"

namespace godwit::cuda {

// A column of a block of inputs.
class GroupedColumn {
 public:
  GODWIT_DEVICE GroupedColumn(const GroupFormat& format, const uint8_t* block, int column)
      : format_(format), block_(block), column_(column) {}

  GODWIT_DEVICE float Scale(int64_t group) const {
    return Half(kernels::NumbersAt(format_, group));
  }
  GODWIT_DEVICE float Min(int64_t group) const {
    return Half(kernels::NumbersAt(format_, group) + kernels::kHalvesBytes);
  }
  GODWIT_DEVICE int32_t Zero(int64_t group) const {
    return block_[kernels::NumbersAt(format_, group) + kernels::kHalvesBytes + column_];
  }
  GODWIT_DEVICE float Part(int64_t group) const {
    return static_cast<int8_t>(block_[kernels::NumbersAt(format_, group) + column_]);
  }
  GODWIT_DEVICE int32_t MinPart(int64_t group) const {
    return static_cast<int8_t>(block_[kernels::MinPartAt(format_, group, column_)]);
  }
  GODWIT_DEVICE float BlockScale() const { return Half(kernels::GroupsBytes(format_)); }
  GODWIT_DEVICE float BlockMin() const {
    return Half(kernels::GroupsBytes(format_) + kernels::kHalvesBytes);
  }

  // The codes of the inputs i to i + 3 of a group, a multiple of 4, or their entries in the table.
  GODWIT_DEVICE uint32_t Quad(int64_t group, int64_t i) const {
    const int64_t run = kernels::RunInputs(format_.codes);
    const int quad = static_cast<int>(i % run / 4);
    const uint8_t* const lines = block_ + group * kernels::GroupBytes(format_) +
                                 i / run * kernels::RunLines(format_.codes) * kernels::kLineBytes;
    if (format_.codes == Codes::k8) return Word(lines);
    const uint32_t low =
        Word(lines + quad / 2 * kernels::kLineBytes) >> (quad % 2 * 4) & 0x0f0f0f0fu;
    if (format_.codes == Codes::k4) return low;
    if (format_.codes == Codes::k4Table) return Looked(low);
    const int bits = BitsOf(format_.codes) - 4;
    const uint32_t high = Word(lines + run / 8 * kernels::kLineBytes) >> (quad * bits) &
                          (0x01010101u * ((1u << bits) - 1));
    return low | high << 4;
  }

 private:
  GODWIT_DEVICE float Half(int64_t at) const {
    return HalfToFloat(*reinterpret_cast<const uint16_t*>(block_ + at + 2 * column_));
  }
  GODWIT_DEVICE uint32_t Word(const uint8_t* line) const {
    return *reinterpret_cast<const uint32_t*>(line + 4 * column_);
  }
  GODWIT_DEVICE uint32_t Looked(uint32_t codes) const {
    uint32_t quad = 0;
    GODWIT_UNROLL
    for (int shift = 0; shift < 32; shift += 8) {
      const int code = static_cast<int>(codes >> shift & 15u);
      quad |= static_cast<uint32_t>(static_cast<uint8_t>(format_.table.begin()[code])) << shift;
    }
    return quad;
  }

  const GroupFormat& format_;
  const uint8_t* block_;
  int column_;
};

// The chain of one output over the groups of a block of inputs.
struct GroupChain {
  float sum;
  int32_t mins;

  // dot: of the group's codes and inputs; a_sum: of its inputs.
  GODWIT_DEVICE void Add(const GroupFormat& format, const GroupedColumn& w, int64_t group,
                         int32_t dot, int32_t a_sum) {
    int32_t offset = Centre(format);
    if (format.scaling == Scaling::kZeros) offset = w.Zero(group);
    const auto x = static_cast<float>(dot - offset * a_sum);
    sum = std::fma(x, IsNested(format.scaling) ? w.Part(group) : w.Scale(group), sum);
    if (format.scaling == Scaling::kMins) {
      sum = std::fma(static_cast<float>(a_sum), w.Min(group), sum);
    }
    if (format.scaling == Scaling::kNestedMins) mins += w.MinPart(group) * a_sum;
  }

  GODWIT_DEVICE float Sum(const GroupFormat& format, const GroupedColumn& w) const {
    return IsNested(format.scaling) ? sum * w.BlockScale() : sum;
  }
  // kNestedMins: what is taken off.
  GODWIT_DEVICE float Mins(const GroupedColumn& w) const {
    return static_cast<float>(mins) * w.BlockMin();
  }
};

struct ProductGroupsArgs {
  GroupFormat format;
  const uint32_t* a;      // [rows, whole blocks] int8 in quads
  int64_t a_stride;       // quads between rows
  const float* a_scales;  // [rows, blocks]
  const int16_t* a_sums;  // [rows, groups of whole blocks]
  const uint8_t* w;       // packed panels (kernels/group_packing.h)
  const float* factors;   // [columns] or null
  const float* bias;      // [columns] or null
  float* out;             // [rows, columns]
  int64_t out_stride;
  int64_t rows;
  int64_t k;
  int64_t columns;

  GODWIT_DEVICE int64_t blocks() const { return BlockCount(format, k); }
  GODWIT_DEVICE GroupedColumn Column(int64_t panel, int64_t block, int column) const {
    const uint8_t* const begin = w + panel * kernels::GroupPanelBytes(format, k);
    return GroupedColumn(format, begin + block * kernels::BlockBytes(format), column);
  }
  // group: among those of all blocks.
  GODWIT_DEVICE int32_t SumOfInputs(int64_t row, int64_t group) const {
    return a_sums[row * blocks() * GroupsOfBlock(format) + group];
  }
  // x and the sum of a block of inputs.
  GODWIT_DEVICE float Added(float x, int64_t row, int64_t block, float sum, float mins) const {
    const float scale = a_scales[row * blocks() + block];
    x = std::fma(sum, scale, x);
    return format.scaling == Scaling::kNestedMins ? std::fma(-mins, scale, x) : x;
  }
  GODWIT_DEVICE void Set(int64_t row, int64_t column, float x) const {
    if (row >= rows || column >= columns) return;
    if (factors != nullptr) x *= factors[column];
    if (bias != nullptr) x += bias[column];
    out[row * out_stride + column] = x;
  }
};

// A block computes kRows rows of a panel. Its threads are a column each, in kLanes lanes. A lane
// computes the chain of one block of inputs.
struct ProductGroupsFew {
  static constexpr const char* kName = "ProductGroupsFew";
  static constexpr int kLanes = 8;
  static constexpr int kRows = 4;
  static constexpr int kThreads = kLanes * kPanel;
  using Args = ProductGroupsArgs;
  struct Shared {
    float sums[kLanes][kRows][kPanel];  // GroupChain::Sum of the lane's block
    float mins[kLanes][kRows][kPanel];  // kNestedMins: GroupChain::Mins
  };

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    Shared& shared = block.shared();
    const int64_t blocks = args.blocks(), first_row = block.y() * kRows;
    PerThread<Block, float> total;
    block.ForThreads([&](int thread) { total[thread] = 0; });
    for (int64_t first = 0; first < blocks; first += kLanes) {
      block.ForThreads([&](int thread) {
        const int lane = thread / kPanel;
        if (first + lane < blocks) {
          AddBlock(args, block.x(), first + lane, first_row, thread, shared);
        }
      });
      block.ForThreads([&](int thread) {
        const int row = thread / kPanel, column = thread % kPanel;
        if (row >= kRows || first_row + row >= args.rows) return;
        float x = total[thread];
        for (int lane = 0; lane < kLanes && first + lane < blocks; ++lane) {
          x = args.Added(x, first_row + row, first + lane, shared.sums[lane][row][column],
                         shared.mins[lane][row][column]);
        }
        total[thread] = x;
      });
    }
    block.ForThreads([&](int thread) {
      if (thread / kPanel >= kRows) return;
      args.Set(first_row + thread / kPanel, block.x() * kPanel + thread % kPanel, total[thread]);
    });
  }

 private:
  // The chain over the groups of block `b`, for all rows, to the shared memory of the lane.
  GODWIT_DEVICE static void AddBlock(const Args& args, int64_t panel, int64_t b, int64_t first_row,
                                     int thread, Shared& shared) {
    const GroupFormat& format = args.format;
    const int lane = thread / kPanel, column = thread % kPanel;
    const GroupedColumn w = args.Column(panel, b, column);
    GroupChain chains[kRows] = {};
    const int64_t groups = GroupsOfBlock(format);
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t g = b * groups + group;
      int32_t dots[kRows] = {};
      const uint32_t* const a = args.a + first_row * args.a_stride + g * format.group / 4;
      for (int64_t i = 0; i < format.group; i += 4) {
        const uint32_t codes = w.Quad(group, i);
        GODWIT_UNROLL
        for (int row = 0; row < kRows; ++row) {
          if (first_row + row >= args.rows) break;
          const uint32_t quad = a[row * args.a_stride + i / 4];
          dots[row] = format.codes == Codes::k4Table ? DotSigned(codes, quad, dots[row])
                                                     : DotUnsigned(codes, quad, dots[row]);
        }
      }
      GODWIT_UNROLL
      for (int row = 0; row < kRows; ++row) {
        if (first_row + row >= args.rows) break;
        chains[row].Add(format, w, group, dots[row], args.SumOfInputs(first_row + row, g));
      }
    }
    GODWIT_UNROLL
    for (int row = 0; row < kRows; ++row) {
      shared.sums[lane][row][column] = chains[row].Sum(format, w);
      if (format.scaling == Scaling::kNestedMins) {
        shared.mins[lane][row][column] = chains[row].Mins(w);
      }
    }
  }
};

// A block computes a tile of kRows rows and a panel. A warp has 16 of the rows and 16 of the
// columns. Codes are unpacked once for all rows, into shared memory.
struct ProductGroupsMany {
  static constexpr const char* kName = "ProductGroupsMany";
  static constexpr int kRowWarps = 4, kColumnWarps = 4;
  static constexpr int kRows = kRowWarps * kTileRows;
  static constexpr int kThreads = kRowWarps * kColumnWarps * kWarpThreads;
  static constexpr int kWarpColumns = kPanel / kColumnWarps;
  static constexpr int kTiles = kWarpColumns / kTileColumns;
  static constexpr int kOutputs = 4 * kTiles;  // of a thread
  static constexpr int kPieceInputs = 4 * kTileWords;
  using Args = ProductGroupsArgs;
  using Shared = TilePieces<kRows, kTileWords>;
  struct Outputs {
    GroupChain chains[kOutputs];  // of the block of inputs
    float totals[kOutputs];
  };

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    const int64_t groups = GroupsOfBlock(args.format), blocks = args.blocks();
    PerThread<Block, Outputs> outputs;
    TileSums<Block, TileInts, kTiles> dots;
    block.ForThreadsAlone([&](int thread) { outputs[thread] = {}; });
    for (int64_t b = 0; b < blocks; ++b) {
      for (int64_t group = 0; group < groups; ++group) {
        block.ForThreadsAlone([&](int thread) { dots.Clear(thread); });
        AddGroup(block, args, b, group, dots);
        block.ForThreadsAlone([&](int thread) {
          ForOutputs(block, args, thread, [&](int i, int64_t row, int column) {
            outputs[thread].chains[i].Add(args.format, args.Column(block.y(), b, column), group,
                                          dots.of_tile[i / 4][thread].sums[i % 4],
                                          args.SumOfInputs(row, b * groups + group));
          });
        });
      }
      block.ForThreadsAlone([&](int thread) {
        ForOutputs(block, args, thread, [&](int i, int64_t row, int column) {
          const GroupedColumn w = args.Column(block.y(), b, column);
          GroupChain& chain = outputs[thread].chains[i];
          float& total = outputs[thread].totals[i];
          const bool has_mins = args.format.scaling == Scaling::kNestedMins;
          total =
              args.Added(total, row, b, chain.Sum(args.format, w), has_mins ? chain.Mins(w) : 0);
          chain = {};
        });
      });
    }
    block.ForThreads([&](int thread) {
      ForOutputs(block, args, thread, [&](int i, int64_t row, int column) {
        args.Set(row, block.y() * kPanel + column, outputs[thread].totals[i]);
      });
    });
  }

 private:
  GODWIT_DEVICE static int WarpRow(int thread) {
    return thread / kWarpThreads / kColumnWarps * kTileRows;
  }
  GODWIT_DEVICE static int WarpColumn(int thread) {
    return thread / kWarpThreads % kColumnWarps * kWarpColumns;
  }

  // Calls body(i, row, column of the panel) for the thread's outputs.
  template <class Block, class Body>
  GODWIT_DEVICE static void ForOutputs(const Block& block, const Args& args, int thread,
                                       const Body& body) {
    GODWIT_UNROLL
    for (int i = 0; i < kOutputs; ++i) {
      const int64_t row = block.x() * kRows + WarpRow(thread) + TileRow(thread, i % 4);
      if (row >= args.rows) continue;
      body(i, row, WarpColumn(thread) + i / 4 * kTileColumns + TileColumn(thread, i % 4));
    }
  }

  // Adds the products of a group's codes and inputs. Words behind its end are zeros.
  template <class Block>
  GODWIT_DEVICE static void AddGroup(const Block& block, const Args& args, int64_t b, int64_t group,
                                     TileSums<Block, TileInts, kTiles>& dots) {
    Shared& shared = block.shared();
    const GroupFormat& format = args.format;
    const int64_t first_row = block.x() * kRows;
    const int64_t begin = (b * GroupsOfBlock(format) + group) * format.group;
    for (int64_t first = 0; first < format.group; first += kPieceInputs) {
      block.ForThreads([&](int thread) {
        shared.template Load<kThreads>(
            thread,
            [&](int row, int quad) -> uint32_t {
              const int64_t input = first + 4 * quad;
              if (first_row + row >= args.rows || input >= format.group) return 0;
              return args.a[(first_row + row) * args.a_stride + (begin + input) / 4];
            },
            [&](int quad, int column) -> uint32_t {
              const int64_t input = first + 4 * quad;
              if (input >= format.group) return 0;
              return args.Column(block.y(), b, column).Quad(group, input);
            });
      });
      AddTiles(
          block,
          [&](int thread, int row, int quad) { return shared.a[WarpRow(thread) + row][quad]; },
          [&](int thread, int quad, int column) {
            return shared.w[quad][WarpColumn(thread) + column];
          },
          [&](const auto& x, const auto& w, auto& sums) {
            if (format.codes == Codes::k4Table) {
              block.template MultiplyInts</*kSignedB=*/true>(x, w, sums);
            } else {
              block.template MultiplyInts</*kSignedB=*/false>(x, w, sums);
            }
          },
          dots);
    }
  }
};

}  // namespace godwit::cuda
