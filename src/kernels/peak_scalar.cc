// The limits of plain loops: one multiplication at a time, in chains as in generic/peak-inl.h.
#include "kernels/tables.h"

namespace godwit::kernels {
namespace {

constexpr int kChains = 8;

int64_t PeakF32(int64_t rounds) noexcept {
  volatile float opaque[2] = {0.5f, 0.25f};
  const float a = opaque[0], b = opaque[1];
  float sums[kChains] = {};
  for (int64_t i = 0; i < rounds; ++i) {
    for (float& sum : sums) sum = sum * a + b;
  }
  for (const float sum : sums) opaque[0] = sum;
  return rounds * kChains;
}

float Read(const float* p, int64_t bytes) noexcept {
  float sums[kChains] = {};
  for (int64_t i = 0; i < bytes / int64_t{sizeof(float)}; i += kChains) {
    for (int c = 0; c < kChains; ++c) sums[c] += p[i + c];
  }
  float total = 0;
  for (const float sum : sums) total += sum;
  return total;
}

}  // namespace

constinit const PeakTable kScalarPeak = {
    .f32 = PeakF32, .bf16 = nullptr, .int8 = nullptr, .read = Read};

}  // namespace godwit::kernels
