#include "ops/alibi.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace godwit::ops {
namespace {

// Bounds a number of tokens to 2^30, from where no key is visible. Places and distances then fit
// into 32 bits, which convert to float in vectors on every machine.
int32_t Near(int64_t tokens) {
  constexpr int64_t kFar = int64_t{1} << 30;
  return static_cast<int32_t>(std::clamp(tokens, -kFar, kFar));
}

// ToFloat(ToBF16(x)) of a number. A branch for NaN would keep the loop below scalar, and prompt
// attention would take half as long again (head_dim 64, AVX2).
float Rounded(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u);
}

float InBf16(float slope, int32_t place) {
  return Rounded(slope * Rounded(static_cast<float>(place)));
}

}  // namespace

std::vector<float> AlibiSlopes(int64_t heads) {
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<float> slopes;
  for (int64_t head = 0; head < heads; ++head) {
    const double i =
        static_cast<double>(head < below ? head + 1 : head - below) + (head < below ? 0.0 : 0.5);
    slopes.push_back(static_cast<float>(std::exp2(-8 * (i / static_cast<double>(below)))));
  }
  return slopes;
}

void FillAlibi(const Alibi& alibi, int64_t head, const AlibiPlace& place, int64_t first,
               std::span<float> bias) {
  if (alibi.slopes.empty()) return std::fill(bias.begin(), bias.end(), 0.0f);
  const float scale = alibi.scale;
  const float slope = alibi.slopes[head];
  const int64_t first_key = first + place.shift;
  float* out = bias.data();
  const auto n = static_cast<int32_t>(bias.size());
  if (alibi.in_bf16) {
    const float rounded = Rounded(slope);
    const float query = InBf16(rounded, Near(place.query));
    const int32_t key = Near(first_key);
    for (int32_t j = 0; j < n; ++j) out[j] = scale * (InBf16(rounded, key + j) - query);
    return;
  }
  const int32_t distance = Near(first_key - place.query);
  for (int32_t j = 0; j < n; ++j) out[j] = scale * (slope * static_cast<float>(distance + j));
}

}  // namespace godwit::ops
