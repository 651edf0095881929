// What the attention kernels of all storages share: the rows of a tile in groups that fit the
// register tile, and what they see. Include after one of vec/*.h.
#pragma once

#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

// Not std::min, std::max, PadToLanes: inline functions that translation units share (vec/avx512.h).
GODWIT_INLINE int64_t Lower(int64_t a, int64_t b) { return a < b ? a : b; }
GODWIT_INLINE int64_t Higher(int64_t a, int64_t b) { return a > b ? a : b; }
GODWIT_INLINE int64_t WholeLanes(int64_t n) {
  return (n + kLaneFloats - 1) / kLaneFloats * kLaneFloats;
}

// At most kTileRows neighbouring rows, none of whose spans is empty.
struct RowGroup {
  int64_t first;
  int64_t rows;
  // Some row sees the keys of [begin, end); all see those of [inner_begin, inner_end), which may be
  // empty.
  int64_t begin, end;
  int64_t inner_begin, inner_end;
};

GODWIT_INLINE RowGroup GroupOf(const TileSpan* spans, int64_t first, int64_t rows) {
  RowGroup group = {.first = first,
                    .rows = rows,
                    .begin = kTileTokens,
                    .end = 0,
                    .inner_begin = 0,
                    .inner_end = kTileTokens};
  for (int64_t r = first; r < first + rows; ++r) {
    group.begin = Lower(group.begin, spans[r].begin);
    group.end = Higher(group.end, spans[r].end);
    group.inner_begin = Higher(group.inner_begin, spans[r].begin);
    group.inner_end = Lower(group.inner_end, spans[r].end);
  }
  return group;
}

// attend(args, group), for the rows that see anything of the tile. Only the first group fetches the
// next tile.
template <class Attend>
GODWIT_INLINE void ForGroups(AttendTileArgs args, Attend attend) {
  const auto sees = [&](int64_t row) { return args.spans[row].begin < args.spans[row].end; };
  for (int64_t row = 0; row < args.rows;) {
    if (!sees(row)) {
      ++row;
      continue;
    }
    int64_t rows = 1;
    while (rows < kTileRows && row + rows < args.rows && sees(row + rows)) ++rows;
    attend(args, GroupOf(args.spans, row, rows));
    args.next_k = args.next_v = nullptr;
    row += rows;
  }
}

// What a product over keys or values fetches meanwhile: those of the next tile or, if there is
// none, its own.
template <class Storage>
GODWIT_INLINE const Storage* Ahead(const void* next, const void* own) {
  return static_cast<const Storage*>(next != nullptr ? next : own);
}

// Fetches part r of n of the first quarter of the next tile's values, `bytes` in all: between the
// products, where memory would rest.
GODWIT_INLINE void FetchBetween(const void* next_v, int64_t bytes, int64_t r, int64_t n) {
  if (next_v == nullptr) return;
  constexpr int64_t kLine = 64;
  const int64_t lines = bytes / 4 / kLine;
  for (int64_t line = lines * r / n; line < lines * (r + 1) / n; ++line) {
    __builtin_prefetch(static_cast<const char*>(next_v) + line * kLine, /*for writing=*/0, 2);
  }
}

GODWIT_INLINE float* StateOf(const AttendTileArgs& args, int64_t row) {
  return args.state + row * args.state_stride;
}

// The products of a group's rows, as the operand reads them, with the keys that some row sees, to
// scores [rows, kTileTokens]: whole lanes of them.
template <class Operand>
GODWIT_INLINE void MultiplyKeys(const AttendTileArgs& args, const RowGroup& group,
                                const typename Operand::A* rows, int64_t stride, float* scores) {
  using W = typename Operand::W;
  const int64_t first = group.begin / kLaneFloats * kLaneFloats;
  RunColumns<Operand>(group.rows, WholeLanes(group.end) - first,
                      {.a = rows,
                       .a_stride = stride,
                       .w = static_cast<const W*>(args.k) + first * Operand::kDepth,
                       .w_stride = kTileTokens * Operand::kDepth,
                       .steps = (args.head_dim + Operand::kDepth - 1) / Operand::kDepth,
                       .resume = false,
                       .out = scores + first,
                       .out_stride = kTileTokens,
                       .ahead = Ahead<W>(args.next_k, args.k)});
}

// values += weights [rows, kTileTokens] by those of the keys [begin, end), multiples of the depth.
template <class Operand>
void AddValues(const AttendTileArgs& args, const typename Operand::A* weights, float* state,
               int64_t rows, int64_t begin, int64_t end) {
  if (begin >= end) return;
  using W = typename Operand::W;
  const int64_t width = WholeLanes(args.head_dim);
  RunColumns<Operand>(rows, width,
                      {.a = weights + begin,
                       .a_stride = kTileTokens,
                       .w = static_cast<const W*>(args.v) + begin * width,
                       .w_stride = Operand::kDepth * width,
                       .steps = (end - begin) / Operand::kDepth,
                       .resume = true,
                       .out = state + kStateHeader,
                       .out_stride = args.state_stride,
                       .ahead = Ahead<W>(args.next_v, args.v) + begin * width});
}

// The rows share the loads of the values that all of them see, in whole steps of kDepth keys:
// together(begin, end). A row alone adds what it sees before and after those, alone(r, begin, end):
// a weight of zero would not do, as 0 * NaN is NaN and the values of a key that nobody has written
// can be NaN.
template <int64_t kDepth, class Alone, class Together>
GODWIT_INLINE void ShareValues(const AttendTileArgs& args, const RowGroup& group, Alone alone,
                               Together together) {
  int64_t begin = (group.inner_begin + kDepth - 1) / kDepth * kDepth;
  int64_t end = group.inner_end / kDepth * kDepth;
  if (begin >= end) begin = end = kTileTokens;
  const TileSpan* spans = args.spans + group.first;
  for (int64_t r = 0; r < group.rows; ++r) alone(r, spans[r].begin, Lower(spans[r].end, begin));
  together(begin, end);
  for (int64_t r = 0; r < group.rows; ++r) alone(r, end, spans[r].end);
}

}  // namespace
}  // namespace godwit::kernels
