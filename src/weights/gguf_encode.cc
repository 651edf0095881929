#include "weights/gguf_encode.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tensor/dtype.h"

namespace godwit {
namespace {

constexpr int kQ8Codes = 127;
constexpr int kQ4Codes = 15;
constexpr int kScaleCodes = 63;  // for the scales and minimums of Q4_K
constexpr size_t kGroup = 32;
constexpr size_t kGroups = 8;  // of a block of Q4_K

void PutHalf(float value, std::byte* out) {
  const F16 half = ToF16(value);
  std::memcpy(out, &half, sizeof(half));
}

// The value as F16, but never infinity: the best fit may be a little beyond F16's range.
float AsHalf(float value) { return ToFloat(ToF16(std::min(value, kLargestF16))); }

// --- Q8_0 ---------------------------------------------------------------------------------------

void EncodeQ8_0(const float* x, std::byte* out) {
  float largest = 0;
  for (size_t i = 0; i < kGroup; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float scale = AsHalf(largest / kQ8Codes);
  PutHalf(scale, out);
  for (size_t i = 0; i < kGroup; ++i) {
    // A scale that F16 rounds down would need the code 128.
    const float code = scale == 0 ? 0 : std::nearbyint(x[i] / scale);
    const auto integer = static_cast<int8_t>(std::clamp<float>(code, -kQ8Codes, kQ8Codes));
    out[2 + i] = static_cast<std::byte>(integer);
  }
}

// --- Q4_K ---------------------------------------------------------------------------------------

using Codes = std::array<int32_t, kGroup>;

// The codes for which scale * code - minimum is nearest. The form lets compilers do four at once.
void ChooseCodes(const float* x, float scale, float minimum, Codes& codes) {
  constexpr float kMinScale = 1e-30f;  // far below what an F16 holds; 1 / scale stays finite
  const float inverse = scale > kMinScale ? 1 / scale : 0;
  for (size_t i = 0; i < kGroup; ++i) {
    const float code = (x[i] + minimum) * inverse + 0.5f;
    codes[i] = static_cast<int32_t>(std::min(std::max(code, 0.0f), kQ4Codes + 0.5f));
  }
}

// Sums from which the squared error follows, as a function of scale and minimum.
struct Moments {
  double sum = 0, square = 0;  // of x
  double codes = 0, codes_square = 0, product = 0;

  double Error(double scale, double minimum) const {
    constexpr double kCount = kGroup;
    return square + scale * (scale * codes_square - 2 * (product + minimum * codes)) +
           minimum * (2 * sum + kCount * minimum);
  }
};

// Sums over eight lanes in a fixed order: the bits are the same everywhere, and lanes run at once.
template <typename Sum, typename Term>
double SumOver(const Term& term) {
  constexpr size_t kLanes = 8;
  std::array<Sum, kLanes> lanes{};
  for (size_t i = 0; i < kGroup; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  double sum = 0;
  for (const Sum lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

void SumCodes(const float* x, const Codes& codes, Moments& moments) {
  moments.codes = SumOver<int32_t>([&](size_t i) { return codes[i]; });
  moments.codes_square = SumOver<int32_t>([&](size_t i) { return codes[i] * codes[i]; });
  moments.product = SumOver<float>([&](size_t i) { return x[i] * static_cast<float>(codes[i]); });
}

// A group's numbers are about scale * code - minimum.
struct Fit {
  double scale = 0, minimum = 0;
};

// The best fit for the codes at hand, with no negative scale or minimum.
Fit LeastSquares(const Moments& m) {
  constexpr double kCount = kGroup;
  const double determinant = kCount * m.codes_square - m.codes * m.codes;
  if (determinant > 0) {
    const Fit fit{.scale = (kCount * m.product - m.codes * m.sum) / determinant,
                  .minimum = (m.codes * m.product - m.codes_square * m.sum) / determinant};
    if (fit.scale >= 0 && fit.minimum >= 0) return fit;
  }
  const double scale = m.codes_square > 0 ? std::max(0.0, m.product / m.codes_square) : 0;
  return {.scale = scale, .minimum = 0};
}

// The best fit of one group alone. Ranges that cut off more or less of the extremes are tried, each
// refined by least squares.
Fit FitGroup(const float* x) {
  Moments moments;
  moments.sum = SumOver<float>([&](size_t i) { return x[i]; });
  moments.square = SumOver<float>([&](size_t i) { return x[i] * x[i]; });
  const auto [least, most] = std::minmax_element(x, x + kGroup);
  const float low = std::min(*least, 0.0f), high = std::max(*most, low);
  if (low == 0 && high == 0) return {};
  Fit best;
  double best_error = moments.square;
  constexpr int kRanges = 20;
  constexpr int kRefinements = 2;
  for (int range = 0; range < kRanges; ++range) {
    // 14 to 18 steps between the extremes: fewer cut nothing off, more cut off both ends.
    const float steps = 14 + 0.2f * static_cast<float>(range);
    Fit fit{.scale = double{high - low} / steps, .minimum = -double{low}};
    for (int i = 0; i <= kRefinements; ++i) {
      Codes codes;
      ChooseCodes(x, static_cast<float>(fit.scale), static_cast<float>(fit.minimum), codes);
      SumCodes(x, codes, moments);
      fit = LeastSquares(moments);
      const double error = moments.Error(fit.scale, fit.minimum);
      if (error < best_error) {
        best = fit;
        best_error = error;
      }
    }
  }
  return best;
}

// A block as it will be stored.
struct BlockQ4_K {
  float scale = 0, minimum = 0;  // F16 values
  std::array<int, kGroups> scales{}, minimums{};
  std::array<Codes, kGroups> codes{};
  double error = 0;
};

// Sets a group's codes for given 6-bit numbers, and returns the error.
double CodeGroup(const float* x, const BlockQ4_K& block, int scale, int minimum, Codes& codes) {
  const float group_scale = block.scale * static_cast<float>(scale);
  const float group_minimum = block.minimum * static_cast<float>(minimum);
  ChooseCodes(x, group_scale, group_minimum, codes);
  return SumOver<float>([&](size_t i) {
    const float error = group_scale * static_cast<float>(codes[i]) - group_minimum - x[i];
    return error * error;
  });
}

int Nearest6Bits(double value, double unit) {
  if (unit == 0) return 0;
  return static_cast<int>(std::clamp(std::nearbyint(value / unit), 0.0, double{kScaleCodes}));
}

// Chooses 6-bit numbers nearest to each fit or beside these, by their error.
void CodeBlock(const float* x, const std::array<Fit, kGroups>& fits, BlockQ4_K& block) {
  block.error = 0;
  for (size_t g = 0; g < kGroups; ++g) {
    const float* const group = x + g * kGroup;
    const int scale = Nearest6Bits(fits[g].scale, block.scale);
    const int minimum = Nearest6Bits(fits[g].minimum, block.minimum);
    double best = -1;
    for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, kScaleCodes); ++s) {
      for (int m = std::max(minimum - 1, 0); m <= std::min(minimum + 1, kScaleCodes); ++m) {
        Codes codes;
        const double error = CodeGroup(group, block, s, m, codes);
        if (best >= 0 && error >= best) continue;
        best = error;
        block.scales[g] = s;
        block.minimums[g] = m;
        block.codes[g] = codes;
      }
    }
    block.error += best;
  }
}

// Fits the block's own two numbers by least squares, and keeps the others.
void RefineUnits(const float* x, BlockQ4_K& block) {
  double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
  for (size_t g = 0; g < kGroups; ++g) {
    Moments m;
    SumCodes(x + g * kGroup, block.codes[g], m);
    const double sum = SumOver<float>([&](size_t i) { return x[g * kGroup + i]; });
    const double scale = block.scales[g], minimum = block.minimums[g];
    aa += scale * scale * m.codes_square;
    ab += scale * minimum * m.codes;
    bb += minimum * minimum * static_cast<double>(kGroup);
    ax += scale * m.product;
    bx += minimum * sum;
  }
  // x is about scale * a - minimum * b.
  const double determinant = aa * bb - ab * ab;
  if (determinant > 1e-9 * aa * bb) {
    const double scale = (bb * ax - ab * bx) / determinant;
    const double minimum = (ab * ax - aa * bx) / determinant;
    if (scale > 0 && minimum >= 0) {
      block.scale = AsHalf(static_cast<float>(scale));
      block.minimum = AsHalf(static_cast<float>(minimum));
      return;
    }
  }
  if (aa > 0 && ax > 0 && block.minimum == 0) block.scale = AsHalf(static_cast<float>(ax / aa));
}

BlockQ4_K SearchBlock(const float* x) {
  std::array<Fit, kGroups> fits;
  double scale = 0, minimum = 0;
  for (size_t g = 0; g < kGroups; ++g) {
    fits[g] = FitGroup(x + g * kGroup);
    scale = std::max(scale, fits[g].scale);
    minimum = std::max(minimum, fits[g].minimum);
  }
  BlockQ4_K block;
  block.scale = AsHalf(static_cast<float>(scale / kScaleCodes));
  block.minimum = AsHalf(static_cast<float>(minimum / kScaleCodes));
  CodeBlock(x, fits, block);
  constexpr int kRefinements = 2;
  for (int i = 0; i < kRefinements && block.error > 0; ++i) {
    BlockQ4_K refined = block;
    RefineUnits(x, refined);
    CodeBlock(x, fits, refined);
    if (refined.error >= block.error) break;
    block = std::move(refined);
  }
  return block;
}

// The inverse of DecodeScalesK and ReadNibbles.
void EncodeQ4_K(const float* x, std::byte* out) {
  const BlockQ4_K block = SearchBlock(x);
  PutHalf(block.scale, out);
  PutHalf(block.minimum, out + 2);
  std::byte* const bits = out + 4;
  for (size_t g = 0; g < 4; ++g) {
    const int scale = block.scales[g + 4], minimum = block.minimums[g + 4];
    bits[g] = static_cast<std::byte>(block.scales[g] | scale >> 4 << 6);
    bits[g + 4] = static_cast<std::byte>(block.minimums[g] | minimum >> 4 << 6);
    bits[g + 8] = static_cast<std::byte>((scale & 15) | (minimum & 15) << 4);
  }
  for (size_t pair = 0; pair < kGroups / 2; ++pair) {
    const Codes& low = block.codes[2 * pair];
    const Codes& high = block.codes[2 * pair + 1];
    for (size_t i = 0; i < kGroup; ++i) {
      out[16 + pair * kGroup + i] = static_cast<std::byte>(low[i] | high[i] << 4);
    }
  }
}

struct Encoder {
  std::string_view format;
  void (*encode)(const float* x, std::byte* out);
  int largest_code;
};
// In Q4_K a scale is up to 63 times the block's. Codes are not negative, so only the minimum makes
// numbers negative.
constexpr Encoder kEncoders[] = {{"Q8_0", EncodeQ8_0, kQ8Codes}, {"Q4_K", EncodeQ4_K, kScaleCodes}};

const Encoder* FindEncoder(const BlockFormat& format) {
  const auto found = std::ranges::find(kEncoders, format.name, &Encoder::format);
  return found == std::end(kEncoders) ? nullptr : found;
}

}  // namespace

bool IsEncoded(const BlockFormat& format) { return FindEncoder(format) != nullptr; }

void EncodeRow(const BlockFormat& format, std::span<const float> row, std::byte* out) {
  const Encoder* const encoder = FindEncoder(format);
  assert(encoder != nullptr && std::ssize(row) % format.elements == 0);
  for (int64_t at = 0; at < std::ssize(row); at += format.elements, out += format.bytes) {
    encoder->encode(row.data() + at, out);
  }
}

float LargestEncoded(const BlockFormat& format) {
  return kLargestF16 * static_cast<float>(FindEncoder(format)->largest_code);
}

}  // namespace godwit
