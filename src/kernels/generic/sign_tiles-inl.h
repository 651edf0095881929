// Shared parts of scores of keys by their signs, for any lookup of tables. Include after one of
// vec/*.h.
#pragma once

namespace godwit::kernels {
namespace {

// Rows that look up the same signs together.
constexpr int64_t kSignRows = kTileVecs;
// Bytes of kSignGroups groups of a tile.
constexpr int64_t kSignStep = 4 * kTileTokens;

GODWIT_INLINE Vec LoadBytes(const uint8_t* p) { return Load(reinterpret_cast<const float*>(p)); }

// A tile of signs, and one that comes later: for every line that is read of the one, a line of the
// other is fetched. All lines of a tile at once would wait for each other.
struct SignTile {
  const uint8_t* signs;
  const uint8_t* next;  // `signs` itself: none

  GODWIT_INLINE Vec Read(int64_t at) const {
    __builtin_prefetch(next + at, /*for writing=*/0, /*second-level cache*/ 2);
    return LoadBytes(signs + at);
  }
};

// Signs::Largest<kRows>(tables, fine or null, tile, groups, largest sum of each row).
template <class Signs, int64_t kRows>
void ScoreSignRows(const ScoreSignsArgs& args, int64_t first) {
  const int64_t bytes = args.groups * (kTileTokens / 2), table_bytes = args.groups * 16;
  const uint8_t* const fine = args.fine != nullptr ? args.fine + first * table_bytes : nullptr;
  // Later tiles are fetched while the first rows go by.
  const uint8_t* const next = first == 0 ? args.next : nullptr;
  for (int64_t tile = 0; tile < args.tiles; ++tile) {
    const uint8_t* const signs = args.signs + tile * bytes;
    const SignTile both{signs, next != nullptr ? next + tile * bytes : signs};
    int32_t largest[kRows];
    Signs::template Largest<kRows>(args.tables + first * table_bytes, fine, both, args.groups,
                                   largest);
    for (int64_t r = 0; r < kRows; ++r) {
      args.scores[(first + r) * args.scores_stride + tile] =
          static_cast<float>(largest[r] - args.offsets[first + r]);
    }
  }
}

template <class Signs>
GODWIT_INLINE void ScoreSignTiles(const ScoreSignsArgs& args) {
  int64_t row = 0;
  for (; row + kSignRows <= args.rows; row += kSignRows) ScoreSignRows<Signs, kSignRows>(args, row);
  for (; row + 2 <= args.rows; row += 2) ScoreSignRows<Signs, 2>(args, row);
  if (row < args.rows) ScoreSignRows<Signs, 1>(args, row);
}

}  // namespace
}  // namespace godwit::kernels
