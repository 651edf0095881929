#include "ops/blocks/represent_group.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace godwit::ops {
namespace {

using kernels::kQuad;

constexpr float kUnbounded = std::numeric_limits<float>::infinity();

// Some parts of a head, dimension by dimension: a centre, and for some kinds a spread.
class Parts {
 public:
  Parts(const IndexView& index, int64_t head, int64_t begin, int64_t end)
      : index_(index), head_(head), begin_(begin), end_(end) {}

  // Calls body(integer of dimension d, integer of d + behind, scale) for each part.
  template <class Body>
  void ForEach(int64_t d, int64_t behind, const Body& body) const {
    for (int64_t part = begin_; part < end_; ++part) {
      const RepresentativeTile tile = index_.parts.Vectors(head_, part / kTileTokens);
      const int64_t slot = part % kTileTokens;
      const auto at = [&](int64_t i) { return tile.vectors[kernels::KeyAt(kQuad, i, slot)] - 128; };
      body(at(d), at(d + behind), tile.scales[slot]);
    }
  }
  int64_t count() const { return end_ - begin_; }

 private:
  const IndexView& index_;
  int64_t head_, begin_, end_;
};

// The largest float that is not above x.
float Below(double x) {
  const auto rounded = static_cast<float>(x);
  return rounded > x ? std::nextafter(rounded, -kUnbounded) : rounded;
}

void BoxAround(const Parts& parts, int64_t head_dim, int64_t d, float* boxes) {
  float low = kUnbounded, high = -kUnbounded, zero = 0;
  parts.ForEach(d, head_dim, [&](int centre, int half_width, float scale) {
    low = std::min(low, Below((centre - half_width) * double{scale}));
    high = std::max(high, -Below(-(centre + half_width) * double{scale}));
    zero += 0 * scale;  // NaN if a scale is NaN, which min and max may pass over
  });
  boxes[d] = low + zero;
  boxes[head_dim + d] = high + zero;
}

// spread: the distance of a part's keys from its centre, in units of the part's own integers. 0:
// the distance is unknown.
void MeanStdOf(const Parts& parts, int64_t head_dim, int64_t d, int64_t behind, float spread,
               float* mean_std) {
  const auto count = static_cast<float>(parts.count());
  float sum = 0, squares = 0;
  parts.ForEach(d, behind,
                [&](int centre, int, float scale) { sum += static_cast<float>(centre) * scale; });
  const float mean = sum / count;
  parts.ForEach(d, behind, [&](int centre, int own, float scale) {
    const float from_mean = static_cast<float>(centre) * scale - mean;
    const float within = spread * static_cast<float>(own) * scale;
    squares += from_mean * from_mean + within * within;
  });
  mean_std[d] = mean;
  mean_std[head_dim + d] = std::sqrt(squares / count);
}

// The share of a tile's keys whose sign in dimension d is set.
float ShareOfSigns(const uint8_t* signs, int64_t d) {
  int count = 0;
  for (int64_t j = 0; j < kTileTokens; ++j) {
    const kernels::SignPlace place = kernels::SignAt(d / 4, j);
    count += signs[place.byte] >> (place.shift + d % 4) & 1;
  }
  return static_cast<float>(count) / static_cast<float>(kTileTokens);
}

// Mean and standard deviation of tiles [begin, end) of signs, from the stored signs and means.
void MeanStdOfSigns(const IndexView& blocks, int64_t head, int64_t begin, int64_t end,
                    float* mean_std) {
  const int64_t head_dim = blocks.head_dim;
  const SignLevels levels = blocks.Levels(head);
  const auto count = static_cast<float>(end - begin);
  for (int64_t d = 0; d < head_dim; ++d) {
    const float range = levels.above[d] - levels.below[d];
    // Calls body(mean, share of set signs) for each tile.
    const auto for_each = [&](const auto& body) {
      for (int64_t i = begin; i < end; ++i) {
        const RepresentativeTile means = blocks.means.Vectors(head, i / kTileTokens);
        const int64_t slot = i % kTileTokens;
        const int integer = means.vectors[kernels::KeyAt(kQuad, d, slot)] - 128;
        const float share = ShareOfSigns(blocks.parts.Signs(head, i).signs, d);
        body(static_cast<float>(integer) * means.scales[slot] * levels.Unit(d) + levels.below[d] +
                 share * range,
             share);
      }
    };
    float sum = 0, squares = 0;
    for_each([&](float mean, float) { sum += mean; });
    const float all = sum / count;
    for_each([&](float mean, float share) {
      squares += (mean - all) * (mean - all) + range * range * share * (1 - share);
    });
    mean_std[d] = all;
    mean_std[head_dim + d] = std::sqrt(squares / count);
  }
}

}  // namespace

float RepresentGroup(const kernels::KernelTable& kernels, const IndexView& blocks, int64_t head,
                     int64_t begin, int64_t end, int8_t* representative) {
  const BlockShape& shape = blocks.shape;
  const int64_t vectors = VectorsOf(shape.type), head_dim = blocks.head_dim;
  std::array<float, 2 * kMaxHeadDim> floats;
  if (shape.signs()) {
    MeanStdOfSigns(blocks, head, begin * shape.tiles(), end * shape.tiles(), floats.data());
    return QuantizeMeanStd(kernels, head_dim, floats.data(), representative);
  }
  const Parts parts(blocks, head, begin * shape.parts, end * shape.parts);
  if (shape.type == RepresentativeType::kQuest) {
    for (int64_t d = 0; d < head_dim; ++d) BoxAround(parts, head_dim, d, floats.data());
    return QuantizeBoxes(floats.data(), head_dim, representative);
  }
  const float spread = vectors == 2 ? 1 / kStdShare : 0;
  const int64_t behind = vectors == 2 ? head_dim : 0;
  for (int64_t d = 0; d < head_dim; ++d) {
    MeanStdOf(parts, head_dim, d, behind, spread, floats.data());
  }
  return QuantizeMeanStd(kernels, head_dim, floats.data(), representative);
}

}  // namespace godwit::ops
