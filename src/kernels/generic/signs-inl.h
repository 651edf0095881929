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

GODWIT_INLINE float LargestOf(const ScoreSignsArgs& args, int64_t row, const SignSums& sums) {
  uint16_t words[kTileTokens];
  StoreWords(words, sums.first);
  StoreWords(words + 16, sums.second);
  StoreWords(words + 32, sums.third);
  StoreWords(words + 48, sums.fourth);
  const Vec offset = Set1(static_cast<float>(args.offsets[row]));
  const Vec nothing = Set1(-__builtin_inff());
  Vec largest = nothing;
  for (int64_t j = 0; j < kTileTokens; j += kLanes) {
    Vec score = Mul(Sub(LoadWords(words + j), offset), Load(args.scales + j));
    if (args.keys < kTileTokens) score = Select(LanesBetween(0, args.keys - j), score, nothing);
    largest = Max(score, largest);
  }
  return ReduceMax(largest);
}

void ScoreSigns(const ScoreSignsArgs& args) noexcept {
  constexpr int64_t kBytes = 4 * kLanes;  // of a vector
  constexpr int64_t kLine = 64;
  const int64_t bytes = args.groups * (kTileTokens / 2);
  for (int64_t line = 0; args.next != nullptr && line < bytes + 2 * kTileTokens; line += kLine) {
    __builtin_prefetch(args.next + line);
  }
  for (int64_t row = 0; row < args.rows; ++row) {
    const uint8_t* tables = args.tables + row * bytes;
    SignSums sums = {Zero(), Zero(), Zero(), Zero()};
    for (int64_t at = 0; at < bytes; at += 2 * kBytes) {
      AddGroups(tables + at, LoadBytes(args.signs + at), LoadBytes(args.signs + at + kBytes), sums);
    }
    args.scores[row * args.scores_stride] = LargestOf(args, row, sums);
  }
}

}  // namespace
}  // namespace godwit::kernels
