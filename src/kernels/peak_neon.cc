#include "kernels/tables.h"
#include "kernels/vec/neon.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/peak-inl.h"

namespace godwit::kernels {
namespace {

// Multiplies int8 as int16, neighbours added: four instructions for eight products.
int64_t PeakInt8(int64_t rounds) noexcept {
  Vec a = Set1Words(3), b = Set1Words(-5);
  Forget(a), Forget(b);
  const auto accumulate = [&](Vec sum) {
    Forget(a);  // hides the value from the compiler, which would multiply once
    return AddPairProducts(a, b, sum);
  };
  return RunChains(Zero(), rounds, accumulate) * 2 * kLanes;
}

}  // namespace

constinit const PeakTable kNeonPeak = {
    .f32 = PeakF32, .bf16 = nullptr, .int8 = PeakInt8, .read = ReadMemory};

}  // namespace godwit::kernels
