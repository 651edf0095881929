// Scores of keys by their signs: tables of 16 that a byte shuffle looks up for all keys of a tile
// at once. Include after one of vec/*.h.
#pragma once

namespace godwit::kernels {
namespace {

// The sums of 16 keys in each of four vectors of words, in as many parts as a vector has 32 bytes.
struct SignSums {
  Vec first, second, third, fourth;
};

GODWIT_INLINE Vec LoadBytes(const uint8_t* p) { return Load(reinterpret_cast<const float*>(p)); }

// Adds two vectors of groups for one row.
GODWIT_INLINE void AddGroups(const uint8_t* tables, Vec signs, Vec more_signs, SignSums& sums) {
  const Vec table = LoadBytes(tables), more = LoadBytes(tables + 4 * kLanes);
  const Vec low = AddBytes(LookUp(table, LowNibbles(signs)), LookUp(more, LowNibbles(more_signs)));
  const Vec high =
      AddBytes(LookUp(table, HighNibbles(signs)), LookUp(more, HighNibbles(more_signs)));
  sums.first = AddWords(sums.first, EvenBytes(low));
  sums.second = AddWords(sums.second, OddBytes(low));
  sums.third = AddWords(sums.third, EvenBytes(high));
  sums.fourth = AddWords(sums.fourth, OddBytes(high));
}

// Of all groups of a row.
GODWIT_INLINE void SumRow(const uint8_t* tables, const uint8_t* signs, int64_t bytes,
                          uint16_t* words) {
  constexpr int64_t kBytes = 4 * kLanes;  // of a vector
  SignSums sums = {Zero(), Zero(), Zero(), Zero()};
  for (int64_t at = 0; at < bytes; at += 2 * kBytes) {
    AddGroups(tables + at, LoadBytes(signs + at), LoadBytes(signs + at + kBytes), sums);
  }
  StoreWords(words, sums.first);
  StoreWords(words + 16, sums.second);
  StoreWords(words + 32, sums.third);
  StoreWords(words + 48, sums.fourth);
}

// fine: sums, or null.
GODWIT_INLINE float LargestOf(const ScoreSignsArgs& args, int64_t row, const uint16_t* sums,
                              const uint16_t* fine) {
  const Vec offset = Set1(static_cast<float>(args.offsets[row]));
  const Vec nothing = Set1(-__builtin_inff());
  Vec largest = nothing;
  for (int64_t j = 0; j < kTileTokens; j += kLanes) {
    Vec sum = LoadWords(sums + j);
    if (fine != nullptr) sum = MulAdd(sum, Set1(float{kSignFine}), LoadWords(fine + j));
    Vec score = Mul(Sub(sum, offset), Load(args.scales + j));
    if (args.keys < kTileTokens) score = Select(LanesBetween(0, args.keys - j), score, nothing);
    largest = Max(score, largest);
  }
  return ReduceMax(largest);
}

void ScoreSigns(const ScoreSignsArgs& args) noexcept {
  constexpr int64_t kLine = 64;
  const int64_t bytes = args.groups * (kTileTokens / 2);
  for (int64_t line = 0; args.next != nullptr && line < bytes + 2 * kTileTokens; line += kLine) {
    __builtin_prefetch(args.next + line);
  }
  uint16_t sums[kTileTokens], fine[kTileTokens];
  for (int64_t row = 0; row < args.rows; ++row) {
    SumRow(args.tables + row * bytes, args.signs, bytes, sums);
    if (args.fine != nullptr) SumRow(args.fine + row * bytes, args.signs, bytes, fine);
    args.scores[row * args.scores_stride] =
        LargestOf(args, row, sums, args.fine != nullptr ? fine : nullptr);
  }
}

}  // namespace
}  // namespace godwit::kernels
