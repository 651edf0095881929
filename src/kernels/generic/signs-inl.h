// Scores of keys by their signs: tables of 16 that a byte shuffle looks up for all keys of a tile
// at once. Include after one of vec/*.h.
#pragma once

#include "kernels/generic/sign_tiles-inl.h"
#include "kernels/generic/transpose_words-inl.h"

namespace godwit::kernels {
namespace {

// Sums of bytes: as words, and of the odd bytes alone, which the words count 256 times.
struct ByteSums {
  Vec words = Zero(), odd = Zero();

  GODWIT_INLINE void Add(Vec bytes) {
    words = AddWords(words, bytes);
    odd = AddWords(odd, OddBytes(bytes));
  }
  GODWIT_INLINE Vec Even() const { return EvenSums(words, odd); }
};

// A shuffle looks up one table for 16 bytes, so bytes of the same group must lie side by side.
struct ShuffledSigns {
  static constexpr int64_t kKeys = 4 * kLanes;  // that are looked up together

  // Each of the four bytes of kKeys keys in a vector.
  static GODWIT_INLINE FourVecs LoadColumns(const SignTile& tile, int64_t at) {
    constexpr int64_t kBytes = 4 * kLanes;  // of a vector
    const auto part = [&](int64_t i) { return TransposeBytes(tile.Read(at + i * kBytes)); };
    return TransposeWords({part(0), part(1), part(2), part(3)});
  }

  // Sums kKeys keys from `key` on, for rows whose tables lie groups * 16 bytes apart.
  template <int64_t kRows>
  static GODWIT_INLINE void Sum(const uint8_t* tables, const SignTile& tile, int64_t key,
                                int64_t groups, ByteSums* sums) {
    for (int64_t group = 0; group < groups; group += kSignGroups) {
      const FourVecs columns = LoadColumns(tile, group / kSignGroups * kSignStep + 4 * key);
      for (int64_t r = 0; r < kRows; ++r) {
        const uint8_t* const table = tables + (r * groups + group) * 16;
        const auto add = [&](int64_t i, Vec column) {
          sums[r].Add(AddBytes(LookUp(Repeat16(table + 16 * i), LowNibbles(column)),
                               LookUp(Repeat16(table + 16 * (i + 4)), HighNibbles(column))));
        };
        add(0, columns.a);
        add(1, columns.b);
        add(2, columns.c);
        add(3, columns.d);
      }
    }
  }

  template <int64_t kRows>
  static GODWIT_INLINE void Largest(const uint8_t* tables, const uint8_t* fine,
                                    const SignTile& tile, int64_t groups, int32_t* largest) {
    Vec most[kRows];
    for (Vec& of_row : most) of_row = Zero();
    for (int64_t key = 0; key < kTileTokens; key += kKeys) {
      ByteSums sums[kRows], finer[kRows];
      Sum<kRows>(tables, tile, key, groups, sums);
      if (fine != nullptr) Sum<kRows>(fine, tile, key, groups, finer);
      for (int64_t r = 0; r < kRows; ++r) {
        const Vec even = sums[r].Even(), odd = sums[r].odd;
        if (fine == nullptr) {
          most[r] = MaxWords(most[r], MaxWords(even, odd));
        } else {
          most[r] = LargerSums(even, finer[r].Even(), LargerSums(odd, finer[r].odd, most[r]));
        }
      }
    }
    for (int64_t r = 0; r < kRows; ++r) {
      largest[r] = fine == nullptr ? ReduceMaxWords(most[r]) : ReduceMaxInts(most[r]);
    }
  }

  // The larger of `most`, as int32, and of kSignFine * words + fine, all of them below 2^15.
  static GODWIT_INLINE Vec LargerSums(Vec words, Vec fine, Vec most) {
    const Vec factors = Set1Ints(kSignFine << 16 | 1);
    const Vec low = AddPairProducts(InterleaveLow<2>(fine, words), factors, Zero());
    const Vec high = AddPairProducts(InterleaveHigh<2>(fine, words), factors, Zero());
    return MaxInts(most, MaxInts(low, high));
  }
};

void ScoreSigns(const ScoreSignsArgs& args) noexcept { ScoreSignTiles<ShuffledSigns>(args); }

}  // namespace
}  // namespace godwit::kernels
