#include "kernels/attention/attention.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/sign_tiles-inl.h"

namespace godwit::kernels {
namespace {

// Signs by permutation: one vector holds the tables of four groups. A permutation looks up the four
// bytes of 16 keys in it, and VPDPBUSD adds them up in place.
struct PermutedSigns {
  static constexpr int64_t kParts = kTileTokens / kLanes, kMaxRows = kSignRows;

  template <int64_t kRows>
  static GODWIT_INLINE void Sum(const uint8_t* tables, const SignTile& tile, int64_t groups,
                                Vec (*sums)[kParts]) {
    // Index bits 4 and 5 are the byte's place in its lane. The permutation ignores the higher bits.
    const __m512i table_of_byte = _mm512_set1_epi32(0x30201000), nibbles = _mm512_set1_epi8(15);
    const auto index = [&](__m512i bytes) {  // bytes & nibbles | table_of_byte
      return _mm512_ternarylogic_epi32(bytes, nibbles, table_of_byte, 0xea);
    };
    for (int64_t group = 0; group < groups; group += kSignGroups) {
      Vec low[kRows], high[kRows];
      for (int64_t r = 0; r < kRows; ++r) {
        low[r] = LoadBytes(tables + (r * groups + group) * 16);
        high[r] = LoadBytes(tables + (r * groups + group + 4) * 16);
      }
      for (int64_t part = 0; part < kParts; ++part) {
        const int64_t at = group / kSignGroups * kSignStep + part * 4 * kLanes;
        const __m512i bytes = _mm512_castps_si512(tile.Read(at));
        const __m512i first = index(bytes), second = index(_mm512_srli_epi16(bytes, 4));
        for (int64_t r = 0; r < kRows; ++r) {
          sums[r][part] = AddLookUp(first, low[r], sums[r][part]);
          sums[r][part] = AddLookUp(second, high[r], sums[r][part]);
        }
      }
    }
  }

  template <int64_t kRows>
  static GODWIT_INLINE void Largest(const uint8_t* tables, const uint8_t* fine,
                                    const SignTile& tile, int64_t groups, int32_t* largest) {
    Vec sums[kRows][kParts];
    for (auto& row : sums) {
      for (Vec& sum : row) sum = Zero();
    }
    Sum<kRows>(tables, tile, groups, sums);
    if (fine != nullptr) {
      for (auto& row : sums) {
        for (Vec& sum : row) sum = TimesFine(sum);
      }
      Sum<kRows>(fine, tile, groups, sums);
    }
    Vec most[kMaxRows] = {};
    for (int64_t r = 0; r < kRows; ++r) {
      most[r] = MaxInts(MaxInts(sums[r][0], sums[r][1]), MaxInts(sums[r][2], sums[r][3]));
    }
    int32_t of_rows[kMaxRows];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(of_rows), LargestInts(most));
    for (int64_t r = 0; r < kRows; ++r) largest[r] = of_rows[r];
  }

  // sum + the sum of the four bytes that each lane's indices name. The intrinsic is avoided because
  // GCC 12 keeps its sums in memory, as in quads_native-inl.h.
  static GODWIT_INLINE Vec AddLookUp(__m512i indices, Vec tables, Vec sum) {
    const __m512i found = _mm512_permutexvar_epi8(indices, _mm512_castps_si512(tables));
    __asm__("vpdpbusd %1, %2, %0" : "+v"(sum) : "v"(_mm512_set1_epi8(1)), "v"(found));
    return sum;
  }
  // The largest integer of each of four vectors. Folding them together takes half of the steps of
  // folding them one by one.
  static GODWIT_INLINE __m128i LargestInts(const Vec* of) {
    const auto fold = [](Vec a, Vec b) {
      return MaxInts(InterleaveLow<4>(a, b), InterleaveHigh<4>(a, b));
    };
    const __m512i all = _mm512_castps_si512(fold(fold(of[0], of[2]), fold(of[1], of[3])));
    const __m256i half =
        _mm256_max_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    return _mm_max_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  }
  static GODWIT_INLINE Vec TimesFine(Vec sum) {
    static_assert(kSignFine == 1 << 7);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(sum), 7));
  }
};

}  // namespace

void avx512_vbmi::ScoreSigns(const ScoreSignsArgs& args) noexcept {
  ScoreSignTiles<PermutedSigns>(args);
}

}  // namespace godwit::kernels
