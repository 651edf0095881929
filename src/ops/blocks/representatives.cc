#include "ops/blocks/representatives.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/kv_layout.h"
#include "ops/quantize.h"

namespace godwit::ops {
namespace {

struct Box {
  float low, high;
  float centre() const { return low / 2 + high / 2; }
  float half_width() const { return high / 2 - low / 2; }
};

// NaN if a key is not finite. Comparisons alone may pass over one.
Box BoxOf(const float* keys, int64_t tokens) {
  Box box{keys[0], keys[0]};
  float zero = 0;
  for (int64_t j = 0; j < tokens; ++j) {
    box.low = std::min(box.low, keys[j]);
    box.high = std::max(box.high, keys[j]);
    zero += 0 * keys[j];
  }
  return {box.low + zero, box.high + zero};
}

float MeanOf(const float* keys, int64_t tokens) {
  float sum = 0;
  for (int64_t j = 0; j < tokens; ++j) sum += keys[j];
  return sum / static_cast<float>(tokens);
}

float StdOf(const float* keys, int64_t tokens, float mean) {
  float squares = 0;
  for (int64_t j = 0; j < tokens; ++j) squares += (keys[j] - mean) * (keys[j] - mean);
  return std::sqrt(squares / static_cast<float>(tokens));
}

// The half-width, in steps around a centre, with which the integers hold the box exactly. Integers
// of 8 bits times a float are exact in double.
int HalfWidth(const Box& box, int centre, double step) {
  const double width = std::max(box.high / step - centre, centre - box.low / step);
  const int rounded = static_cast<int>(std::ceil(width));
  const bool holds = (centre - rounded) * step <= box.low && box.high <= (centre + rounded) * step;
  return holds ? rounded : rounded + 1;
}

}  // namespace

// Rounds boxes to [centre, half-width], so that the box of the integers contains every box.
float QuantizeBoxes(const float* boxes, int64_t head_dim, int8_t* out) {
  const auto box_of = [&](int64_t d) { return Box{boxes[d], boxes[head_dim + d]}; };
  std::fill_n(out, (2 * head_dim + kernels::kQuad - 1) / kernels::kQuad * kernels::kQuad,
              int8_t{0});
  float largest = 0;
  for (int64_t d = 0; d < head_dim; ++d) {
    const Box box = box_of(d);
    if (std::isnan(box.centre())) return box.centre();
    largest = std::max({largest, std::abs(box.centre()), box.half_width()});
  }
  if (largest < 0x1p-120f) return 0;
  // 125, not 127: rounding of the centre may widen a half-width by half a step, and it is rounded
  // up.
  const float step = largest / 125.0f;
  for (int64_t d = 0; d < head_dim; ++d) {
    const Box box = box_of(d);
    const int centre = static_cast<int>(std::nearbyint(box.centre() / step));
    out[d] = static_cast<int8_t>(centre);
    out[head_dim + d] = static_cast<int8_t>(HalfWidth(box, centre, double{step}));
  }
  return step;
}

float QuantizeMeanStd(const kernels::KernelTable& kernels, int64_t head_dim, float* mean_std,
                      int8_t* representative) {
  for (int64_t d = head_dim; d < 2 * head_dim; ++d) mean_std[d] *= kStdShare;
  return QuantizeRow(kernels, mean_std, 2 * head_dim, representative).scale;
}

float Represent(RepresentativeType type, const kernels::KernelTable& kernels, const float* keys,
                int64_t stride, int64_t tokens, int64_t head_dim, float* scratch,
                int8_t* representative) {
  for (int64_t d = 0; d < head_dim; ++d) {
    const float* const row = keys + d * stride;
    switch (type) {
      case RepresentativeType::kMean:
        scratch[d] = MeanOf(row, tokens);
        break;
      case RepresentativeType::kMax:
        scratch[d] = BoxOf(row, tokens).high;
        break;
      case RepresentativeType::kQuest: {
        const Box box = BoxOf(row, tokens);
        scratch[d] = box.low;
        scratch[head_dim + d] = box.high;
        break;
      }
      case RepresentativeType::kMeanStd:
        scratch[d] = MeanOf(row, tokens);
        scratch[head_dim + d] = StdOf(row, tokens, scratch[d]);
        break;
      case RepresentativeType::kSign:  // has no vectors
      case RepresentativeType::kFixed:
      case RepresentativeType::kDynamic:
        scratch[d] = row[0];
        break;
    }
  }
  if (type == RepresentativeType::kQuest) return QuantizeBoxes(scratch, head_dim, representative);
  if (type == RepresentativeType::kMeanStd) {
    return QuantizeMeanStd(kernels, head_dim, scratch, representative);
  }
  return QuantizeRow(kernels, scratch, VectorsOf(type) * head_dim, representative).scale;
}

void LearnLevels(int64_t tiles, const std::function<const float*(int64_t)>& read, int64_t head_dim,
                 float* levels) {
  float* const centre = levels;
  float* const above = levels + head_dim;
  float* const below = levels + 2 * head_dim;
  std::fill_n(levels, 3 * head_dim, 0.0f);
  const auto tokens = static_cast<float>(tiles * kTileTokens);
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const float* const keys = read(tile);
    for (int64_t i = 0; i < head_dim * kTileTokens; ++i) centre[i / kTileTokens] += keys[i];
  }
  for (int64_t d = 0; tiles > 0 && d < head_dim; ++d) centre[d] /= tokens;
  // The first round splits numbers at the mean of their tile, the second midway between the levels.
  for (int round = 0; round < 2; ++round) {
    std::array<float, kMaxHeadDim> count_above = {}, sum_above = {}, sum_below = {};
    float magnitude = 0;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const float* const keys = read(tile);
      for (int64_t d = 0; d < head_dim; ++d) {
        const auto at = static_cast<size_t>(d);
        const float mean = MeanOf(keys + d * kTileTokens, kTileTokens);
        const float border = mean + LevelsIn(levels, head_dim).Middle(d);
        for (int64_t j = 0; j < kTileTokens; ++j) {
          const float number = keys[d * kTileTokens + j];
          const bool is_above = number > border;
          (is_above ? sum_above : sum_below)[at] += number - mean;
          count_above[at] += is_above ? 1.0f : 0.0f;
          magnitude += std::abs(number - mean);
        }
      }
    }
    // Each side gets one more key at the average distance, because a side may have none.
    const float usual = magnitude > 0 ? magnitude / (tokens * static_cast<float>(head_dim)) : 1.0f;
    for (int64_t d = 0; d < head_dim; ++d) {
      const auto at = static_cast<size_t>(d);
      above[d] = (sum_above[at] + usual) / (count_above[at] + 1);
      below[d] = (sum_below[at] - usual) / (tokens - count_above[at] + 1);
    }
  }
}

float RepresentSigns(const kernels::KernelTable& kernels, const float* keys,
                     const SignLevels& levels, int64_t head_dim, int8_t* offset, uint8_t* signs) {
  std::array<float, kMaxHeadDim> offsets = {};
  std::fill_n(signs, SignGroups(head_dim) * kTileTokens / 2, uint8_t{0});
  for (int64_t d = 0; d < head_dim; ++d) {
    const float* const row = keys + d * kTileTokens;
    const float mean = MeanOf(row, kTileTokens);
    const auto bit = static_cast<uint8_t>(1 << (kernels::SignAt(d / 4, 0).shift + d % 4));
    // The loop goes from key to key, because compilers then take 16 bytes at once.
    std::array<uint8_t, kTileTokens> bits;
    const float border = mean + levels.Middle(d);
    for (size_t j = 0; j < kTileTokens; ++j) bits[j] = row[j] > border ? bit : 0;
    int above = 0;
    for (int64_t j = 0; j < kTileTokens; ++j) {
      const uint8_t sign = bits[j];
      signs[kernels::SignAt(d / 4, j).byte] |= sign;
      above += sign != 0 ? 1 : 0;
    }
    const float share = static_cast<float>(above) / static_cast<float>(kTileTokens);
    const float said = levels.below[d] + share * (levels.above[d] - levels.below[d]);
    offsets[d] = (mean - levels.centre[d] - said) / levels.Unit(d);
  }
  return QuantizeRow(kernels, offsets.data(), head_dim, offset).scale;
}

}  // namespace godwit::ops
