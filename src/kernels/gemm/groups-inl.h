// The product with grouped weights: rows of activations through the panels of a weight. Include
// after one of vec/*.h.
#pragma once

#include "kernels/gemm/groups_tile-inl.h"
#include "kernels/gemm/groups_widened-inl.h"
#include "kernels/gemm/rows-inl.h"

namespace godwit::kernels {
namespace {

// The bytes of a panel that all tiles of few rows go through before the next part.
constexpr int64_t kPassBytes = 18 << 10;

// Some rows through blocks of a panel.
struct GroupPass {
  const GroupSizes& sizes;
  GroupRows of;  // from the first block on
  int64_t rows;
  int64_t tiles;          // that the rows are cut into
  const uint8_t* blocks;  // of the panel
  int64_t count;
  float* x;              // [rows, kPanelColumns]
  const uint8_t* ahead;  // what is fetched: as many bytes, by all tiles together; null: nothing
};

GODWIT_INLINE void RunGroupPass(const GroupTiles& tiles, const GroupPass& pass) {
  const int64_t width = GroupTileVecs((pass.rows + pass.tiles - 1) / pass.tiles) * kLanes;
  const int64_t share = pass.sizes.block_bytes / (pass.tiles * (kPanelColumns / width));
  const int64_t fetches = pass.sizes.block / tiles.fetch_inputs;
  const uint8_t* ahead = pass.ahead;
  for (int64_t tile = 0; tile < pass.tiles; ++tile) {
    const int64_t row = pass.rows * tile / pass.tiles, next = pass.rows * (tile + 1) / pass.tiles;
    for (int64_t column = 0; column < kPanelColumns; column += width) {
      tiles.run[next - row - 1](
          {.sizes = pass.sizes,
           .rows = pass.of.From(row, 0, pass.sizes),
           .blocks = pass.blocks,
           .count = pass.count,
           .column = column,
           .x = pass.x + row * kPanelColumns + column,
           .ahead = {.at = ahead,
                     .lines = pass.ahead == nullptr ? 0 : (share / fetches + 63) / 64,
                     .step = share / fetches}});
      ahead += pass.count * share;
    }
  }
}

// Whether a tile takes codes as they lie. For five and six bits, it takes only those that most
// files have: each other kind would cost the compiler as much again.
template <class Packed, Scaling kScaling>
constexpr bool kTaken = Packed::kPhases <= 2 || IsNested(kScaling);

// The functions that multiply with weights of a format.
struct GroupKernel {
  const GroupTiles* packed = nullptr;  // for codes as they lie; nullptr: not taken
  void (*many_rows)(const GroupSizes& sizes, const GroupRows& of, int64_t rows,
                    const uint8_t* panel, int64_t blocks, float* x);
  int64_t fewest_rows;  // that are many
  bool fetches_near, by_turns;
  CodeForm form;
};
template <class Packed, class Many, Scaling kScaling>
constexpr GroupKernel MakeGroupKernel() {
  GroupKernel kernel = {.many_rows = RunManyRows<Many, Packed, kScaling>,
                        .fewest_rows = Many::kFewestRows,
                        .fetches_near = Packed::kFetchLevel == 1,
                        .by_turns = kByTurns<kScaling>,
                        .form = Packed::kForm};
  if constexpr (kTaken<Packed, kScaling>) kernel.packed = &kGroupTiles<Packed, kScaling>;
  return kernel;
}
template <class Packed, class Many, Scaling kScaling>
constexpr GroupKernel kGroupKernel = MakeGroupKernel<Packed, Many, kScaling>();

// Multiplies at most kBlockRows rows with a panel: x [rows, kPanelColumns]. Where many rows meet
// its codes, or a tile does not take them, they are widened once for all. A panel that is read in
// its order is left to the processor where operands are fetched near. On a Zen 4 that is 1.2 times
// as fast.
void RunGroupPanel(const GroupKernel& kernel, const GroupSizes& sizes, const GroupRows& of,
                   int64_t rows, const uint8_t* panel, int64_t blocks, float* x) {
  __builtin_memset(x, 0, static_cast<size_t>(rows * kPanelColumns) * sizeof(float));
  if (kernel.packed == nullptr || rows >= kernel.fewest_rows) {
    return kernel.many_rows(sizes, of, rows, panel, blocks, x);
  }
  GroupPass pass = {.sizes = sizes, .of = of, .rows = rows, .x = x};
  pass.tiles = (rows + kGroupTileRows - 1) / kGroupTileRows;
  const bool in_order = pass.tiles == 1 && GroupTileVecs(rows) * kLanes == kPanelColumns;
  const int64_t ahead_bytes = rows == 1 && kernel.by_turns ? kTurnBytes : kAheadBytes;
  const int64_t fitting = kPassBytes / sizes.block_bytes;
  const int64_t most = in_order ? blocks : fitting > 0 ? fitting : 1;
  for (int64_t begin = 0; begin < blocks; begin += most) {
    pass.of = of.From(0, begin, sizes);
    pass.count = blocks - begin < most ? blocks - begin : most;
    pass.blocks = panel + begin * sizes.block_bytes;
    pass.ahead = pass.blocks + (in_order ? ahead_bytes : most * sizes.block_bytes);
    if (in_order && kernel.fetches_near) pass.ahead = nullptr;
    RunGroupPass(*kernel.packed, pass);
  }
}

void FinishGroups(const GroupGemmArgs& args, int64_t row, int64_t panel, const float* x) {
  const int64_t column = panel * kPanelColumns, columns = ColumnsFrom(column, args.columns);
  const float* factors = args.factors == nullptr ? nullptr : args.factors + column;
  const float* bias = args.bias == nullptr ? nullptr : args.bias + column;
  float* out = args.out + row * args.out_stride + column;
  for (int64_t c = 0; c < columns; ++c) {
    float y = x[c];
    if (factors != nullptr) y *= factors[c];
    out[c] = bias == nullptr ? y : y + bias[c];
  }
}

// `inline`, as files that multiply in a way of their own do not use it.
inline void RunGroupPanels(const GroupKernel& kernel, const GroupGemmArgs& args) {
  const GroupFormat& format = *args.format;
  const GroupSizes sizes(format, kernel.form);
  const GroupRows all(args);
  alignas(64) float x[kBlockRows * kPanelColumns];
  for (int64_t p = args.panel_begin; p < args.panel_end; ++p) {
    const auto* panel = static_cast<const uint8_t*>(args.w) + p * GroupPanelBytes(format, args.k);
    for (int64_t row = 0; row < args.rows; row += kBlockRows) {
      const int64_t rows = args.rows - row < kBlockRows ? args.rows - row : kBlockRows;
      RunGroupPanel(kernel, sizes, all.From(row, 0, sizes), rows, panel, BlockCount(format, args.k),
                    x);
      for (int64_t r = 0; r < rows; ++r) {
        FinishGroups(args, row + r, p, x + r * kPanelColumns);
      }
    }
  }
}

// run<scaling of the format>()
template <class Run>
GODWIT_INLINE void WithScaling(const GroupGemmArgs& args, const Run& run) {
  switch (args.format->scaling) {
    case Scaling::kCentred:
      return run.template operator()<Scaling::kCentred>();
    case Scaling::kZeros:
      return run.template operator()<Scaling::kZeros>();
    case Scaling::kMins:
      return run.template operator()<Scaling::kMins>();
    case Scaling::kNested:
      return run.template operator()<Scaling::kNested>();
    case Scaling::kNestedMins:
      return run.template operator()<Scaling::kNestedMins>();
  }
}

// ManyRows has the operand of many rows.
template <Codes kCodes, class Packed, template <Codes, bool> class ManyRows>
GODWIT_INLINE void GemmGroupsOf(const GroupGemmArgs& args) {
  WithScaling(args, [&]<Scaling kScaling>() {
    if constexpr (IsInUse(kCodes, kScaling)) {
      constexpr bool kCentred = kScaling == Scaling::kCentred || kScaling == Scaling::kNested;
      RunGroupPanels(kGroupKernel<Packed, ManyRows<kCodes, kCentred>, kScaling>, args);
    }
  });
}

// SmallQuads multiplies codes of 4 bits, Quads any bytes, of few rows.
template <class SmallQuads, class Quads, template <Codes, bool> class ManyRows>
void GemmGroupsBy(const GroupGemmArgs& args) {
  switch (args.format->codes) {
    case Codes::k4:
      return GemmGroupsOf<Codes::k4, NibbleOperand<SmallQuads>, ManyRows>(args);
    case Codes::k4Table:
      return GemmGroupsOf<Codes::k4Table, TableOperand<Quads>, ManyRows>(args);
    case Codes::k5:
      return GemmGroupsOf<Codes::k5, PlaneOperand<Codes::k5, Quads>, ManyRows>(args);
    case Codes::k6:
      return GemmGroupsOf<Codes::k6, PlaneOperand<Codes::k6, Quads>, ManyRows>(args);
    case Codes::k8:
      return GemmGroupsOf<Codes::k8, ByteOperand<Quads>, ManyRows>(args);
  }
}

}  // namespace
}  // namespace godwit::kernels
