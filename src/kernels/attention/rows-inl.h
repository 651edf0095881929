// Shared parts of the attention kernels of all storages: the rows of a tile in groups that fit the
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

template <class Storage>
GODWIT_INLINE int64_t BytesOfValues(const AttendTileArgs& args) {
  return kTileTokens * WholeLanes(args.value_dim) * int64_t{sizeof(Storage)};
}
template <class Storage>
GODWIT_INLINE int64_t BytesOfKeys(const AttendTileArgs& args) {
  return kTileTokens * args.head_dim * int64_t{sizeof(Storage)};
}

// The memory that the products fetch meanwhile.
constexpr Fetch kFetchTile = {.places = true};

// The places to fetch from in the next tile: keys and values at once, or both halves of keys alone.
// Each has two pages if there are as many. They begin at byte `at` of it. Without a next tile they
// are this one's, which is at hand.
template <class Storage>
GODWIT_INLINE Places AheadOf(const AttendTileArgs& args, int64_t at) {
  constexpr int64_t kPage = 4096;
  const bool own = args.next_k == nullptr, alone = !own && args.next_v == nullptr;
  const int64_t keys = BytesOfKeys<Storage>(args), values = BytesOfValues<Storage>(args);
  const auto* const k = static_cast<const char*>(own ? args.k : args.next_k);
  const auto* const v = static_cast<const char*>(own ? args.v : args.next_v);
  const int64_t half = alone ? keys / 2 : values;
  const bool pages = half >= 2 * kPage;
  Places next = {.halves = {k, alone ? k + half : v},
                 .gap = pages ? half / 2 : Places::kLine,
                 .pace = pages ? Places::kLine : 2 * Places::kLine};
  // The products read values beside the keys all the same.
  if (alone) next.pace = (next.pace * keys + keys + values - 1) / (keys + values);
  next.Skip(at);
  return next;
}

// Fetches part r of n of the first quarter of what the product with the values will: between the
// products, where memory would rest.
template <class Storage, int kLevel>
GODWIT_INLINE void FetchBetween(const AttendTileArgs& args, int64_t r, int64_t n) {
  if (args.next_k == nullptr) return;
  const int64_t rounds = BytesOfValues<Storage>(args) / 4 / Places::kRound;
  const int64_t begin = rounds * r / n, end = rounds * (r + 1) / n;
  Places next = AheadOf<Storage>(args, BytesOfKeys<Storage>(args) + begin * Places::kRound);
  for (int64_t round = begin; round < end; ++round) next.Fetch<Places::kRound, kLevel>();
}

GODWIT_INLINE float* StateOf(const AttendTileArgs& args, int64_t row) {
  return args.state + row * args.state_stride;
}
GODWIT_INLINE const float* BiasOf(const AttendTileArgs& args, int64_t row) {
  return args.bias == nullptr ? nullptr : args.bias + row * kTileTokens;
}

// From `row` on, at most `rows` of them, whose queries are elements Q. Only the first fetch the
// next tile.
template <class Q>
GODWIT_INLINE AttendTileArgs RowsFrom(AttendTileArgs args, int64_t row, int64_t rows) {
  args.rows = Lower(rows, args.rows - row);
  args.q = static_cast<const Q*>(args.q) + row * args.q_stride;
  args.spans += row;
  args.bias = BiasOf(args, row);
  args.state = StateOf(args, row);
  if constexpr (sizeof(Q) == 1) {
    args.q_scales += row;
    args.q_sums += row;
  }
  if (row > 0) args.next_k = args.next_v = nullptr;
  return args;
}

// The products of a group's rows, as the operand reads them, with the keys that some row sees, to
// scores [rows, kTileTokens]: whole lanes of them.
template <class Operand>
GODWIT_INLINE void MultiplyKeys(const AttendTileArgs& args, const RowGroup& group,
                                const typename Operand::A* rows, int64_t stride, float* scores) {
  using W = typename Operand::W;
  const int64_t first = group.begin / kLaneFloats * kLaneFloats;
  RunColumns<Operand, kFetchTile>(group.rows, WholeLanes(group.end) - first,
                                  {.a = rows,
                                   .a_stride = stride,
                                   .w = static_cast<const W*>(args.k) + first * Operand::kDepth,
                                   .w_stride = kTileTokens * Operand::kDepth,
                                   .steps = (args.head_dim + Operand::kDepth - 1) / Operand::kDepth,
                                   .resume = false,
                                   .out = scores + first,
                                   .out_stride = kTileTokens,
                                   .places = AheadOf<W>(args, 0)});
}

// values += weights [rows, kTileTokens] by those of the keys [begin, end), multiples of the depth.
template <class Operand>
void AddValues(const AttendTileArgs& args, const typename Operand::A* weights, float* state,
               int64_t rows, int64_t begin, int64_t end) {
  if (begin >= end) return;
  using W = typename Operand::W;
  const int64_t width = WholeLanes(args.value_dim);
  const int64_t before = begin * width * int64_t{sizeof(W)};
  RunColumns<Operand, kFetchTile>(rows, width,
                                  {.a = weights + begin,
                                   .a_stride = kTileTokens,
                                   .w = static_cast<const W*>(args.v) + begin * width,
                                   .w_stride = Operand::kDepth * width,
                                   .steps = (end - begin) / Operand::kDepth,
                                   .resume = true,
                                   .out = state + kStateHeader,
                                   .out_stride = args.state_stride,
                                   .places = AheadOf<W>(args, BytesOfKeys<W>(args) + before)});
}

// Shares the loads of values that all rows see, in whole steps of kDepth keys: together(begin,
// end). A row alone adds the values that it sees before and after those: alone(r, begin, end). A
// weight of zero would not do, as 0 * NaN is NaN and the values of unwritten keys can be NaN.
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
