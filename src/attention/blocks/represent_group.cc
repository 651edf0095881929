#include "attention/blocks/represent_group.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace godwit {
namespace {

using kernels::kQuad;
using kernels::kTileTokens;

constexpr float kUnbounded = std::numeric_limits<float>::infinity();

// Some parts of a head, dimension by dimension: a centre, and of some kinds a spread.
class Parts {
 public:
  Parts(const BlockIndex& index, int64_t layer, int64_t head, int64_t begin, int64_t end)
      : index_(index), layer_(layer), head_(head), begin_(begin), end_(end) {}

  // body(integer of dimension d, integer of d + behind, scale) for each.
  template <class Body>
  void ForEach(int64_t d, int64_t behind, const Body& body) const {
    for (int64_t part = begin_; part < end_; ++part) {
      const RepresentativeTile tile = index_.Tile(layer_, head_, part / kTileTokens);
      const int64_t slot = part % kTileTokens;
      const auto at = [&](int64_t i) { return tile.vectors[kernels::KeyAt(kQuad, i, slot)] - 128; };
      body(at(d), at(d + behind), tile.scales[slot]);
    }
  }
  int64_t count() const { return end_ - begin_; }

 private:
  const BlockIndex& index_;
  int64_t layer_, head_, begin_, end_;
};

// The next number below what is exact in double, unless a float is as exact.
float Below(double x) {
  const auto rounded = static_cast<float>(x);
  return rounded > x ? std::nextafter(rounded, -kUnbounded) : rounded;
}

void BoxAround(const Parts& parts, int64_t head_dim, int64_t d, float* boxes) {
  float low = kUnbounded, high = -kUnbounded, zero = 0;
  parts.ForEach(d, head_dim, [&](int centre, int half_width, float scale) {
    low = std::min(low, Below((centre - half_width) * double{scale}));
    high = std::max(high, -Below(-(centre + half_width) * double{scale}));
    zero += 0 * scale;  // NaN, which a comparison may pass over
  });
  boxes[d] = low + zero;
  boxes[head_dim + d] = high + zero;
}

// spread: of a part, in what its own integers count, how far its keys lie from the centre; 0: they
// are not known to.
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

// Keys of tiles [begin, end) of whose signs in dimension d are set.
int CountSigns(const BlockIndex& blocks, int64_t layer, int64_t head, int64_t begin, int64_t end,
               int64_t d) {
  int count = 0;
  for (int64_t tile = begin; tile < end; ++tile) {
    const uint8_t* const signs = blocks.Signs(layer, head, tile).signs;
    for (int64_t j = 0; j < kTileTokens; ++j) {
      const kernels::SignPlace place = kernels::SignAt(d / 4, j);
      count += signs[place.byte] >> (place.shift + d % 4) & 1;
    }
  }
  return count;
}

}  // namespace

float RepresentGroup(const kernels::KernelTable& kernels, const BlockIndex& blocks, int64_t layer,
                     int64_t head, int64_t begin, int64_t end, int8_t* representative) {
  const BlockShape& shape = blocks.shape();
  const int64_t vectors = VectorsOf(shape.type), head_dim = blocks.width() / vectors;
  std::array<float, 2 * kernels::kMaxHeadDim> floats;
  if (shape.signs()) {
    const SignLevels levels = blocks.Levels(layer, head);
    const int64_t tiles = shape.tokens / kTileTokens;
    const auto keys = static_cast<float>((end - begin) * shape.tokens);
    for (int64_t d = 0; d < head_dim; ++d) {
      const int set = CountSigns(blocks, layer, head, begin * tiles, end * tiles, d);
      const float share = static_cast<float>(set) / keys;
      const float range = levels.above[d] - levels.below[d];
      floats[static_cast<size_t>(d)] = levels.below[d] + share * range;
      floats[static_cast<size_t>(head_dim + d)] = range * std::sqrt(share * (1 - share));
    }
    return QuantizeMeanStd(kernels, head_dim, floats.data(), representative);
  }
  const Parts parts(blocks, layer, head, begin * shape.parts, end * shape.parts);
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

}  // namespace godwit
