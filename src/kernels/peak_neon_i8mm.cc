#include "kernels/tables.h"
#include "kernels/vec/neon.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/peak-inl.h"

namespace godwit::kernels {
namespace {

// BFMMLA adds four products to each of four sums.
int64_t PeakBF16(int64_t rounds) noexcept {
  Vec a = Set1(0.5f), b = Set1(0.25f);
  Forget(a), Forget(b);
  const auto accumulate = [&](Vec sum) { return AddPairMatrices(a, b, sum); };
  return RunChains(Zero(), rounds, accumulate) * 4 * kLanes;
}

// USMMLA adds eight products to each of four sums.
int64_t PeakInt8(int64_t rounds) noexcept {
  Vec a = Set1Ints(0x03030303), b = Set1Ints(0x05050505);
  Forget(a), Forget(b);
  const auto accumulate = [&](Vec sum) { return AddUnsignedBySignedMatrices(a, b, sum); };
  return RunChains(Zero(), rounds, accumulate) * 8 * kLanes;
}

}  // namespace

constinit const PeakTable kNeonI8mmPeak = {
    .f32 = PeakF32, .bf16 = PeakBF16, .int8 = PeakInt8, .read = ReadMemory};

}  // namespace godwit::kernels
