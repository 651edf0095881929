// Products of grouped weights by an instruction that adds the four of a quad to an int32. Include
// after vec/avx512.h or vec/neon.h.
//
// Quads has the form of codes that the instruction takes, and AddProducts(a, w, sum).
#pragma once

#include "kernels/gemm/groups_widened-inl.h"

namespace godwit::kernels {
namespace {

template <class Quads>
struct DotQuads : FetchedFar {
  static constexpr CodeForm kForm = Quads::kForm;
  static constexpr int64_t kMost = kMaxGroup;
  static GODWIT_INLINE Vec Start(Vec first) { return first; }
  static GODWIT_INLINE Vec Add(Vec a, Vec w, Vec sum) { return Quads::AddProducts(a, w, sum); }
  static GODWIT_INLINE Vec ToInts(Vec sum, Vec /*first*/) { return sum; }
};

// Any codes, of many rows. A group begins with its row's sum, minus the centre times.
template <class Quads, bool kHasCentre>
struct DotCodes : FetchedFar {
  static constexpr int kQuadWords = 1;
  static constexpr int64_t kFewestRows = 7;
  static constexpr int64_t kMost = kMaxGroup;
  using Prepared = GroupSums;

  static GODWIT_INLINE void Columns(Vec codes, int32_t /*centre*/, uint8_t* to) {
    Store(reinterpret_cast<float*>(to), codes);
  }
  static GODWIT_INLINE PreparedRows Prepare(const GroupSizes& sizes, const GroupRows& of,
                                            int64_t rows, int64_t inputs, Prepared& to) {
    for (int64_t row = 0; kHasCentre && row < rows; ++row) {
      const int16_t* sums = of.sums + row * of.sums_stride;
      for (int64_t g = 0; g < inputs / sizes.group; ++g) {
        to.values[StartAt(g, row)] = -sizes.centre * sums[g];
      }
    }
    return {.words = of.a, .stride = of.a_stride, .starts = to.values};
  }
  static GODWIT_INLINE Vec First(Vec a, Vec w, const int32_t* start) {
    return Add(a, w, kHasCentre ? BroadcastWord(start) : Zero());
  }
  static GODWIT_INLINE Vec Add(Vec a, Vec w, Vec sum) { return Quads::AddProducts(a, w, sum); }
  static GODWIT_INLINE Vec ToInts(Vec sum, const int32_t* /*start*/) { return sum; }
};

// Whether integers of such codes are too high.
constexpr bool HasCentre(CodeForm form, Codes codes, bool is_centred) {
  const GroupFormat format = {.codes = codes,
                              .scaling = is_centred ? Scaling::kCentred : Scaling::kZeros};
  return CentreOf(format, form) != 0;
}
template <class Quads, Codes kCodes, bool kCentred>
using DotCodesOf = DotCodes<Quads, HasCentre(Quads::kForm, kCodes, kCentred)>;

}  // namespace
}  // namespace godwit::kernels
