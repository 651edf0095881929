#include "kernels/tables.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/peak-inl.h"

namespace godwit::kernels {
namespace {

int64_t PeakBF16(int64_t rounds) noexcept {
  Vec a = Set1(0.5f), b = Set1(0.25f);
  Forget(a), Forget(b);
  const auto accumulate = [&](Vec sum) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); };
  return RunChains(Zero(), rounds, accumulate) * 32;
}

int64_t PeakInt8(int64_t rounds) noexcept { return kAvx512VnniPeak.int8(rounds); }

}  // namespace

constinit const PeakTable kAvx512Bf16Peak = {
    .f32 = PeakF32, .bf16 = PeakBF16, .int8 = PeakInt8, .read = ReadMemory};

}  // namespace godwit::kernels
