// AVX-512 with VDPBF16PS, which multiplies and adds both halves of a pair at once (rounding after
// each, as the twin in bf16_avx512.cc does, but the odd half first, and subnormals count as zero).
#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/gemm/gemm-inl.h"
#include "kernels/gemm/pairs-inl.h"

namespace godwit::kernels {
namespace {

struct NativePairOperand : RowsInPlace<BF16> {
  using W = BF16;
  static constexpr int64_t kDepth = 2;
  static constexpr int kPhases = 1;
  template <int kPhase>
  static GODWIT_INLINE Vec Row(const BF16* a) {
    float pair;
    __builtin_memcpy(&pair, a, sizeof(pair));
    return Set1(pair);
  }
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const BF16* w) {
    return LoadPairs(w);
  }
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)w);
  }
};

}  // namespace

void avx512_bf16::GemmBF16(const GemmArgs& args) noexcept { Gemm<NativePairOperand>(args); }

}  // namespace godwit::kernels
