#include "kernels/tables.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/peak-inl.h"

namespace godwit::kernels {
namespace {

// VPDPBUSD adds four products to each of 16 sums.
int64_t PeakInt8(int64_t rounds) noexcept {
  __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-5);
  Forget(a), Forget(b);
  const auto accumulate = [&](__m512i sum) { return _mm512_dpbusd_epi32(sum, a, b); };
  return RunChains(_mm512_setzero_si512(), rounds, accumulate) * 64;
}

}  // namespace

constinit const PeakTable kAvx512VnniPeak = {
    .f32 = PeakF32, .bf16 = nullptr, .int8 = PeakInt8, .read = ReadMemory};

}  // namespace godwit::kernels
