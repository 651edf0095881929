// The product of int8 rows with a packed weight of groups, for every format of
// kernels::GroupGemmArgs (kernels/kernel_table.h). Integers are exact, and chains of floats have
// the order of the CPU. So the bits are those of the CPU.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/numbers.h"
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

// A block computes kRows rows of a panel. Its threads are a column each, in kLanes lanes. A lane
// computes the chain of one block of inputs.
struct ProductGroups {
  static constexpr const char* kName = "ProductGroups";
  static constexpr int kPanel = static_cast<int>(kernels::kPanelColumns);
  static constexpr int kLanes = 8;
  static constexpr int kRows = 4;
  static constexpr int kThreads = kLanes * kPanel;
  struct Args {
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
  };
  struct Shared {
    float sums[kLanes][kRows][kPanel];  // of the blocks: s, or s * d of nested ones
    float mins[kLanes][kRows][kPanel];  // kNestedMins: what is taken off
  };
  struct Sums {
    float sum[kRows];
    int32_t mins[kRows];
  };

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    Shared& shared = block.shared();
    const int64_t blocks = BlockCount(args.format, args.k), first_row = block.y() * kRows;
    const uint8_t* const panel = args.w + block.x() * kernels::GroupPanelBytes(args.format, args.k);
    PerThread<Block, float> total;
    block.ForThreads([&](int thread) { total[thread] = 0; });
    for (int64_t first = 0; first < blocks; first += kLanes) {
      block.ForThreads([&](int thread) {
        const int lane = thread / kPanel;
        if (first + lane < blocks) AddBlock(args, panel, first + lane, first_row, thread, shared);
      });
      block.ForThreads([&](int thread) {
        const int row = thread / kPanel, column = thread % kPanel;
        if (row >= kRows || first_row + row >= args.rows) return;
        float x = total[thread];
        for (int lane = 0; lane < kLanes && first + lane < blocks; ++lane) {
          const float scale = args.a_scales[(first_row + row) * blocks + first + lane];
          x = std::fma(shared.sums[lane][row][column], scale, x);
          if (args.format.scaling != Scaling::kNestedMins) continue;
          x = std::fma(-shared.mins[lane][row][column], scale, x);
        }
        total[thread] = x;
      });
    }
    block.ForThreads([&](int thread) {
      const int64_t row = first_row + thread / kPanel;
      const int64_t column = block.x() * kPanel + thread % kPanel;
      if (thread / kPanel >= kRows || row >= args.rows || column >= args.columns) return;
      float x = total[thread];
      if (args.factors != nullptr) x *= args.factors[column];
      if (args.bias != nullptr) x += args.bias[column];
      args.out[row * args.out_stride + column] = x;
    });
  }

 private:
  // The chain over the groups of block `b`, for all rows, to the shared memory of the lane.
  GODWIT_DEVICE static void AddBlock(const Args& args, const uint8_t* panel, int64_t b,
                                     int64_t first_row, int thread, Shared& shared) {
    const GroupFormat& format = args.format;
    const int lane = thread / kPanel, column = thread % kPanel;
    const GroupedColumn w(format, panel + b * kernels::BlockBytes(format), column);
    Sums sums = {};
    const int64_t groups = GroupsOfBlock(format);
    for (int64_t group = 0; group < groups; ++group) {
      AddGroup(args, w, b * groups + group, group, first_row, sums);
    }
    GODWIT_UNROLL
    for (int row = 0; row < kRows; ++row) {
      const float sum = sums.sum[row];
      shared.sums[lane][row][column] = IsNested(format.scaling) ? sum * w.BlockScale() : sum;
      if (format.scaling == Scaling::kNestedMins) {
        shared.mins[lane][row][column] = static_cast<float>(sums.mins[row]) * w.BlockMin();
      }
    }
  }

  // g: the group's number among those of all blocks.
  GODWIT_DEVICE static void AddGroup(const Args& args, const GroupedColumn& w, int64_t g,
                                     int64_t group, int64_t first_row, Sums& sums) {
    const GroupFormat& format = args.format;
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
    const int64_t all_groups = BlockCount(format, args.k) * GroupsOfBlock(format);
    GODWIT_UNROLL
    for (int row = 0; row < kRows; ++row) {
      if (first_row + row >= args.rows) break;
      const int32_t a_sum = args.a_sums[(first_row + row) * all_groups + g];
      int32_t offset = Centre(format);
      if (format.scaling == Scaling::kZeros) offset = w.Zero(group);
      const auto dot = static_cast<float>(dots[row] - offset * a_sum);
      float& s = sums.sum[row];
      s = std::fma(dot, IsNested(format.scaling) ? w.Part(group) : w.Scale(group), s);
      if (format.scaling == Scaling::kMins) {
        s = std::fma(static_cast<float>(a_sum), w.Min(group), s);
      }
      if (format.scaling == Scaling::kNestedMins) sums.mins[row] += w.MinPart(group) * a_sum;
    }
  }
};

}  // namespace godwit::cuda
