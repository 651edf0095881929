// The definition of the product with grouped weights, from the packed panels.
#include <cmath>
#include <cstddef>
#include <cstring>

#include "kernels/group_packing.h"
#include "kernels/scalar.h"

namespace godwit::kernels::scalar {
namespace {

// One column of one block.
class BlockColumn {
 public:
  BlockColumn(const GroupFormat& format, const void* panel, int64_t block, int64_t column)
      : format_(format),
        bytes_(static_cast<const uint8_t*>(panel) + block * BlockBytes(format)),
        column_(column) {}

  float Scale(int64_t group) const { return Half(NumbersAt(format_, group)); }
  float Min(int64_t group) const { return Half(NumbersAt(format_, group) + kHalvesBytes); }
  int32_t Zero(int64_t group) const {
    return bytes_[NumbersAt(format_, group) + kHalvesBytes + column_];
  }
  float Part(int64_t group) const {
    return static_cast<int8_t>(bytes_[NumbersAt(format_, group) + column_]);
  }
  float BlockScale() const { return Half(GroupsBytes(format_)); }
  float BlockMin() const { return Half(GroupsBytes(format_) + kHalvesBytes); }
  int32_t MinPart(int64_t group) const {
    return static_cast<int8_t>(bytes_[MinPartAt(format_, group, column_)]);
  }

  // The dot product of a group with its activations a [group].
  int32_t Dot(int64_t group, const int8_t* a) const {
    const uint8_t* codes = bytes_ + group * GroupBytes(format_);
    int32_t dot = 0;
    for (int64_t i = 0; i < format_.group; ++i) dot += a[i] * Integer(codes, i);
    return dot;
  }

 private:
  float Half(int64_t at) const {
    F16 half;
    std::memcpy(&half, bytes_ + at + 2 * column_, sizeof(half));
    return ToFloat(half);
  }
  int32_t Integer(const uint8_t* codes, int64_t i) const {
    const uint8_t code = CodeAt(format_, codes, i, column_);
    return format_.codes == Codes::k4Table ? format_.table[code] : code - Centre(format_);
  }

  const GroupFormat& format_;
  const uint8_t* bytes_;
  int64_t column_;
};

// s plus the product of a group with one row. a: [group]; sum: the sum of a.
float AddGroup(const GroupFormat& format, const BlockColumn& w, int64_t group, const int8_t* a,
               int16_t sum, float s) {
  int32_t dot = w.Dot(group, a);
  if (IsNested(format.scaling)) return std::fma(static_cast<float>(dot), w.Part(group), s);
  if (format.scaling == Scaling::kZeros) dot -= w.Zero(group) * sum;
  s = std::fma(static_cast<float>(dot), w.Scale(group), s);
  return format.scaling == Scaling::kMins ? std::fma(static_cast<float>(sum), w.Min(group), s) : s;
}

// x plus the product of a block with one row. a: [BlockInputs]; scale: of a; sums: [groups].
float AddBlock(const GroupFormat& format, const BlockColumn& w, const int8_t* a, float scale,
               const int16_t* sums, float x) {
  float s = 0;
  int32_t mins = 0;
  for (int64_t group = 0; group < GroupsOfBlock(format); ++group) {
    s = AddGroup(format, w, group, a + group * format.group, sums[group], s);
    if (format.scaling == Scaling::kNestedMins) mins += w.MinPart(group) * sums[group];
  }
  x = std::fma(IsNested(format.scaling) ? s * w.BlockScale() : s, scale, x);
  if (format.scaling != Scaling::kNestedMins) return x;
  return std::fma(-(static_cast<float>(mins) * w.BlockMin()), scale, x);
}

float Element(const GroupGemmArgs& args, const void* panel, int64_t row, int64_t column) {
  const GroupFormat& format = *args.format;
  const int8_t* a = args.a + row * args.a_stride;
  const float* scales = args.a_scales + row * args.a_scales_stride;
  const int16_t* sums = args.a_sums + row * args.a_sums_stride;
  float x = 0;
  for (int64_t b = 0; b < BlockCount(format, args.k); ++b) {
    x = AddBlock(format, BlockColumn(format, panel, b, column), a + b * BlockInputs(format),
                 scales[b], sums + b * GroupsOfBlock(format), x);
  }
  return x;
}

}  // namespace

void GemmGroups(const GroupGemmArgs& args) noexcept {
  for (int64_t p = args.panel_begin; p < args.panel_end; ++p) {
    const auto* panel =
        static_cast<const std::byte*>(args.w) + p * GroupPanelBytes(*args.format, args.k);
    for (int64_t row = 0; row < args.rows; ++row) {
      for (int64_t c = 0; c < kPanelColumns && p * kPanelColumns + c < args.columns; ++c) {
        const int64_t column = p * kPanelColumns + c;
        float x = Element(args, panel, row, c);
        if (args.factors != nullptr) x *= args.factors[column];
        if (args.bias != nullptr) x += args.bias[column];
        args.out[row * args.out_stride + column] = x;
      }
    }
  }
}

}  // namespace godwit::kernels::scalar
