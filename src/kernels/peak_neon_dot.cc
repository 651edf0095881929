#include "kernels/tables.h"
#include "kernels/vec/neon.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/peak-inl.h"

namespace godwit::kernels {
namespace {

// SDOT adds four products to each of four sums.
int64_t PeakInt8(int64_t rounds) noexcept {
  Vec a = Set1Ints(0x03030303), b = Set1Ints(0x05050505);
  Forget(a), Forget(b);
  const auto accumulate = [&](Vec sum) { return AddSignedQuadProducts(a, b, sum); };
  return RunChains(Zero(), rounds, accumulate) * 4 * kLanes;
}

}  // namespace

constinit const PeakTable kNeonDotPeak = {
    .f32 = PeakF32, .bf16 = nullptr, .int8 = PeakInt8, .read = ReadMemory};

}  // namespace godwit::kernels
