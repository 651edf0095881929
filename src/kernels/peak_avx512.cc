#include "kernels/tables.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/peak-inl.h"

namespace godwit::kernels {
namespace {

// Multiplies int8 as int16, as peak_avx2.cc does.
int64_t PeakInt8(int64_t rounds) noexcept {
  __m512i a = _mm512_set1_epi16(3), b = _mm512_set1_epi16(-5);
  Forget(a), Forget(b);
  const auto accumulate = [&](__m512i sum) {
    Forget(a);
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
  };
  return RunChains(_mm512_setzero_si512(), rounds, accumulate) * 32;
}

}  // namespace

constinit const PeakTable kAvx512Peak = {
    .f32 = PeakF32, .bf16 = nullptr, .int8 = PeakInt8, .read = ReadMemory};

}  // namespace godwit::kernels
