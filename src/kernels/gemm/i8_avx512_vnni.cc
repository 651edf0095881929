// AVX-512 with VPDPBUSD, which multiplies four unsigned bytes by four signed ones and adds them to
// an int32, without saturation.
#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/gemm/i8-inl.h"

namespace godwit::kernels {
namespace {

struct NativeQuadOperand : RowsInPlace<int8_t> {
  using W = uint8_t;
  static constexpr int64_t kDepth = kQuad;
  static constexpr int kPhases = 1;
  template <int kPhase>
  static GODWIT_INLINE Vec Row(const int8_t* a) {
    float quad;
    __builtin_memcpy(&quad, a, sizeof(quad));
    return Set1(quad);
  }
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const uint8_t* w) {
    return Load(reinterpret_cast<const float*>(w));
  }
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) {
    return _mm512_castsi512_ps(_mm512_dpbusd_epi32(_mm512_castps_si512(sum), _mm512_castps_si512(w),
                                                   _mm512_castps_si512(a)));
  }
};

}  // namespace

void avx512_vnni::GemmI8(const GemmArgs& args) noexcept {
  kernels::GemmI8<NativeQuadOperand>(args);
}

}  // namespace godwit::kernels
