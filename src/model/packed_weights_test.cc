// Codes of table levels: the part that stays as it is in memory. packed_checkpoint_test.cc covers
// codes that are integers.
#include "model/packed_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/test_support.h"
#include "weights/safetensors_source.h"
#include "weights/tensor_rows.h"

namespace godwit::packed_weights_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Layout = PackedFormat::Layout;

LinearTensors LinearOf(PackedTensors tensors) {
  LinearTensors linear;
  linear.packed = {std::make_shared<PackedTensors>(std::move(tensors))};
  linear.parts = {&linear.packed[0]->weight};
  return linear;
}

Weight Pack(ThreadPool& pool, const LinearTensors& linear) {
  const PackedTensors& tensors = *linear.packed[0];
  const GroupFormat format = FormatOfPacked(linear).value();
  const PackedRows rows(pool, tensors);
  return ops::PackGroups(pool, format, tensors.weight.shape[0], tensors.weight.shape[1],
                         [&](int64_t output, kernels::GroupedRow& row, float& factor) {
                           ReadPacked(tensors, rows, output, 0, format, row, factor);
                         });
}

// One expert's slice of a tensor of two experts.
TensorInfo SliceOf(const TensorInfo& tensor, size_t expert, const char* ending) {
  TensorInfo slice = tensor;
  slice.name = fmt::format("experts.gate_up_proj.{}{}", expert, ending);
  slice.shape.erase(slice.shape.begin());
  slice.bytes = tensor.bytes.subspan(expert * tensor.bytes.size() / 2, tensor.bytes.size() / 2);
  return slice;
}

// Kernels multiply no other formats. AWQ has 4 bits, and levels have no zeros.
TEST(PackedWeights, AllFormatsAreInUse) {
  for (const Layout layout : {Layout::kPackQuantized, Layout::kIntQuantized, Layout::kGptq,
                              Layout::kAwq, Layout::kFloats4, Layout::kNf4}) {
    const bool levels = layout == Layout::kFloats4 || layout == Layout::kNf4;
    for (const int bits : {4, 8}) {
      if (bits == 8 && (levels || layout == Layout::kAwq)) continue;
      for (const bool zeros : {false, true}) {
        if (zeros && levels) continue;
        for (const int64_t group : {0, 16, 32, 64, 128, 1024}) {
          PackedTensors tensors;
          tensors.format = {.layout = layout, .bits = bits, .group = group, .zeros = zeros};
          const auto format = FormatOfPacked(LinearOf(std::move(tensors)));
          EXPECT_TRUE(format && IsInUse(*format));
        }
      }
    }
  }
}

// The numbers that transformers unpacks (tools/make_packed_goldens.py).
TEST(Mxfp4Weights, StandForTheSameNumbers) {
  const auto golden = OpenSafetensors(GODWIT_SOURCE_DIR "/tests/golden/packed/mxfp4.safetensors");
  const TensorInfo& blocks = *golden->Find("experts.gate_up_proj_blocks");
  const TensorInfo& scales = *golden->Find("experts.gate_up_proj_scales");
  const std::vector<float> want = ReadAllRows(*golden->Find("weights"));
  const auto outputs = static_cast<size_t>(blocks.shape[1]);
  const auto inputs = static_cast<size_t>(blocks.shape[2] * 32);
  ThreadPool pool(2);
  for (size_t expert = 0; expert < 2; ++expert) {
    const LinearTensors linear = LinearOf(
        Mxfp4Tensors(SliceOf(blocks, expert, "_blocks"), SliceOf(scales, expert, "_scales")));
    EXPECT_EQ(ModuleName(linear), fmt::format("experts.gate_up_proj.{}", expert));
    const Weight weight = Pack(pool, linear);
    const PackedRows rows(pool, *linear.packed[0]);
    std::vector<float> got(inputs), floats(inputs);
    for (size_t i = 0; i < outputs; ++i) {
      const auto begin = want.begin() + static_cast<int64_t>((expert * outputs + i) * inputs);
      const std::vector<float> row(begin, begin + static_cast<int64_t>(inputs));
      ops::UnpackRow(weight, static_cast<int64_t>(i), got.data());
      EXPECT_EQ(got, row) << "expert " << expert << ", output " << i;
      rows.Dequantize(static_cast<int64_t>(i), floats);
      EXPECT_EQ(floats, row);
    }
  }
}

// One output of two groups.
struct Mxfp4Row {
  explicit Mxfp4Row(uint8_t first, uint8_t second)
      : codes(32, std::byte{0x7f}), exponents{std::byte{first}, std::byte{second}} {}

  LinearTensors linear() const {
    const TensorInfo blocks{
        .name = "x_blocks", .dtype = DType::kU8, .shape = {1, 2, 16}, .bytes = std::span(codes)};
    const TensorInfo scales{
        .name = "x_scales", .dtype = DType::kU8, .shape = {1, 2}, .bytes = std::span(exponents)};
    return LinearOf(Mxfp4Tensors(blocks, scales));
  }

  std::vector<std::byte> codes;
  std::vector<std::byte> exponents;
};

TEST(Mxfp4Weights, HaveThirtyNineScalesInAnOutput) {
  ThreadPool pool(1);
  // First 2^15 and 2^-24 in memory, where levels are halves; then powers of two of their own.
  for (const auto& [first, second] : {std::pair(143, 104), {254, 216}, {44, 6}, {1, 1}}) {
    const Mxfp4Row row(static_cast<uint8_t>(first), static_cast<uint8_t>(second));
    const Weight weight = Pack(pool, row.linear());
    std::vector<float> got(64);
    ops::UnpackRow(weight, 0, got.data());
    EXPECT_EQ(got[0], -6 * std::ldexp(1.0f, first - 127));
    EXPECT_EQ(got[1], 6 * std::ldexp(1.0f, first - 127));
    EXPECT_EQ(got[63], 6 * std::ldexp(1.0f, second - 127));
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Pack(pool, Mxfp4Row(254, 215).linear()); }),
              HasSubstr("tensor x_scales: the scales of output 0, such as 3.0948501e+26, are too "
                        "far apart"));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { Pack(pool, Mxfp4Row(100, 255).linear()); }),
              HasSubstr("tensor x_scales: element 1 is nan, expected a finite number"));
}

ModelTensors ModelOf(LinearTensors linear) {
  ModelTensors tensors;
  tensors.head = std::move(linear);
  return tensors;
}

// The levels of nf4 are no integers. The measured error is the one that inspect reports.
TEST(Nf4Weights, AreNearTheirLevels) {
  std::vector<uint8_t> codes(32);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<uint8_t>((i % 8 * 2) << 4 | (i % 8 * 2 + 1));
  }
  const float scale = 123.25f / 128;  // makes the unit in memory a power of two
  PackedTensors tensors{.format = {.layout = Layout::kNf4, .group = 64},
                        .weight = {.name = "x.weight", .shape = {1, 64}},
                        .codes = {.bytes = std::as_bytes(std::span(codes))},
                        .scales = {.name = "x.weight.absmax",
                                   .dtype = DType::kF32,
                                   .shape = {1},
                                   .bytes = std::as_bytes(std::span(&scale, 1))}};
  const LinearTensors linear = LinearOf(std::move(tensors));
  ThreadPool pool(1);
  const PackedRows rows(pool, *linear.packed[0]);
  const Weight weight = Pack(pool, linear);
  std::vector<float> got(64), want(64);
  ops::UnpackRow(weight, 0, got.data());
  rows.Dequantize(0, want);
  float largest = 0;
  const auto levels = LevelsOf(linear.packed[0]->format);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(want[i], scale * levels[i % 16]);
    largest = std::max(largest, std::fabs(got[i] - want[i]) / scale);
  }
  EXPECT_GT(largest, 0.0015f);
  EXPECT_LT(largest, 0.0035f);
  EXPECT_THAT(
      RoundingsOf(ModelOf(linear)),
      ElementsAre(
          "f32 scales to f16: by at most 1/2048",
          fmt::format("the 16 levels of NF4 to int8: by {:.2g} of a group's largest", largest)));
}

// All scales of E4M3 and all levels, with a factor that is no power of two.
TEST(Nvfp4Weights, AreNotRounded) {
  std::vector<uint8_t> scales;
  for (int code = 0; code < 256; ++code) {
    if (code % 128 != 127) scales.push_back(static_cast<uint8_t>(code));
  }
  const auto groups = std::ssize(scales), inputs = groups * 16;
  std::vector<uint8_t> codes(scales.size() * 8);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<uint8_t>((i % 8 * 2 + 1) << 4 | (i % 8 * 2));
  }
  ThreadPool pool(1);
  for (const float factor : {0.25f, 3e-5f}) {
    const LinearTensors linear =
        LinearOf({.format = {.layout = Layout::kFloats4,
                             .group = 16,
                             .scale_type = PackedFormat::ScaleType::kE4M3},
                  .weight = {.name = "x.weight", .shape = {1, inputs}},
                  .codes = {.bytes = std::as_bytes(std::span(codes))},
                  .scales = {.shape = {1, groups}, .bytes = std::as_bytes(std::span(scales))},
                  .factor = factor});
    const Weight weight = Pack(pool, linear);
    EXPECT_EQ(weight.scales[0], factor);
    std::vector<float> got(static_cast<size_t>(inputs)), dequantized(got.size());
    ops::UnpackRow(weight, 0, got.data());
    PackedRows(pool, *linear.packed[0]).Dequantize(0, dequantized);
    const auto levels = LevelsOf(linear.packed[0]->format);
    const auto scale_of = E4M3Levels();
    for (size_t i = 0; i < got.size(); ++i) {
      const float want = scale_of[scales[i / 16]] * levels[i % 16] * factor;
      EXPECT_EQ(got[i], want) << i;
      EXPECT_FLOAT_EQ(dequantized[i], want) << i;
    }
  }
}

TEST(Mxfp4Weights, AreNotRounded) {
  EXPECT_THAT(RoundingsOf(ModelOf(Mxfp4Row(100, 101).linear())), testing::IsEmpty());
}

}  // namespace
}  // namespace godwit::packed_weights_test
