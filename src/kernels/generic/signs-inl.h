// Scores of keys by their signs: tables of 16 that a byte shuffle looks up for all keys of a tile
// at once. Include after one of vec/*.h.
#pragma once

namespace godwit::kernels {
namespace {

// Rows that look up the same signs together; their sums take four registers each.
constexpr int64_t kSignRows = kTileVecs;

GODWIT_INLINE Vec LoadBytes(const uint8_t* p) { return Load(reinterpret_cast<const float*>(p)); }

// Sums of bytes: as words, and of the odd bytes alone, which the words count 256 times.
struct ByteSums {
  Vec words = Zero(), odd = Zero();

  GODWIT_INLINE void Add(Vec bytes) {
    words = AddWords(words, bytes);
    odd = AddWords(odd, OddBytes(bytes));
  }
};

// Of all groups, for rows whose tables lie `bytes` apart, as many as a tile of signs has.
template <int64_t kRows>
GODWIT_INLINE void SumRows(const uint8_t* tables, const uint8_t* signs, int64_t bytes,
                           WordSums* sums) {
  constexpr int64_t kBytes = 4 * kLanes;  // of a vector
  ByteSums low[kRows], high[kRows];
  for (int64_t at = 0; at < bytes; at += 2 * kBytes) {
    const Vec first = LoadBytes(signs + at), second = LoadBytes(signs + at + kBytes);
    const Vec first_low = LowNibbles(first), first_high = HighNibbles(first);
    const Vec second_low = LowNibbles(second), second_high = HighNibbles(second);
    for (int64_t r = 0; r < kRows; ++r) {
      const Vec table = LoadBytes(tables + r * bytes + at);
      const Vec more = LoadBytes(tables + r * bytes + at + kBytes);
      low[r].Add(AddBytes(LookUp(table, first_low), LookUp(more, second_low)));
      high[r].Add(AddBytes(LookUp(table, first_high), LookUp(more, second_high)));
    }
  }
  for (int64_t r = 0; r < kRows; ++r) {
    sums[r] = {FoldWords(EvenSums(low[r].words, low[r].odd)), FoldWords(low[r].odd),
               FoldWords(EvenSums(high[r].words, high[r].odd)), FoldWords(high[r].odd)};
  }
}

template <int64_t kRows>
void ScoreSignRows(const ScoreSignsArgs& args, int64_t first) {
  constexpr int64_t kLine = 64;
  const int64_t bytes = args.groups * (kTileTokens / 2);
  // What comes later is fetched while the first rows go by.
  const uint8_t* const next = first == 0 ? args.next : nullptr;
  for (int64_t tile = 0; tile < args.tiles; ++tile) {
    const uint8_t* const signs = args.signs + tile * bytes;
    for (int64_t line = 0; next != nullptr && line < bytes; line += kLine) {
      __builtin_prefetch(next + tile * bytes + line, /*for writing=*/0, /*second-level cache*/ 2);
    }
    WordSums sums[kRows], fine[kRows];
    SumRows<kRows>(args.tables + first * bytes, signs, bytes, sums);
    if (args.fine != nullptr) SumRows<kRows>(args.fine + first * bytes, signs, bytes, fine);
    for (int64_t r = 0; r < kRows; ++r) {
      const int32_t largest =
          args.fine != nullptr ? LargestSum(sums[r], kSignFine, fine[r]) : LargestSum(sums[r]);
      args.scores[(first + r) * args.scores_stride + tile] =
          static_cast<float>(largest - args.offsets[first + r]);
    }
  }
}

void ScoreSigns(const ScoreSignsArgs& args) noexcept {
  int64_t row = 0;
  for (; row + kSignRows <= args.rows; row += kSignRows) ScoreSignRows<kSignRows>(args, row);
  for (; row + 2 <= args.rows; row += 2) ScoreSignRows<2>(args, row);
  if (row < args.rows) ScoreSignRows<1>(args, row);
}

}  // namespace
}  // namespace godwit::kernels
