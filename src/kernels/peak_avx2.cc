#include "kernels/tables.h"
#include "kernels/vec/avx2.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/peak-inl.h"

namespace godwit::kernels {
namespace {

// Multiplies int8 as int16, which never saturates: VPMADDWD and the addition of its sums.
int64_t PeakInt8(int64_t rounds) noexcept {
  __m256i a = _mm256_set1_epi16(3), b = _mm256_set1_epi16(-5);
  Forget(a), Forget(b);
  const auto accumulate = [&](__m256i sum) {
    Forget(a);  // hides the value from the compiler, which would multiply once
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
  };
  return RunChains(_mm256_setzero_si256(), rounds, accumulate) * 16;
}

}  // namespace

constinit const PeakTable kAvx2Peak = {
    .f32 = PeakF32, .bf16 = nullptr, .int8 = PeakInt8, .read = ReadMemory};

}  // namespace godwit::kernels
