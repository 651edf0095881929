#include "weights/packed_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/test_support.h"

namespace godwit::packed_rows_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using Layout = PackedFormat::Layout;

template <typename T>
TensorInfo TensorOf(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {.name = "x",
          .dtype = dtype,
          .shape = std::move(shape),
          .bytes = std::as_bytes(std::span(values))};
}

TEST(PackedRowsTest, WordsHoldTheLastCodesToo) {
  const PackedShapes packed = ShapesOf({.zeros = true}, 9, 17);
  EXPECT_THAT(packed.codes.shape, ElementsAre(9, 3));
  EXPECT_THAT(packed.scales.shape, ElementsAre(9, 1));
  EXPECT_THAT(packed.zeros.shape, ElementsAre(2, 1));
  const PackedShapes gptq = ShapesOf({.layout = Layout::kGptq, .bits = 8, .group = 16}, 9, 32);
  EXPECT_THAT(gptq.codes.shape, ElementsAre(8, 9));
  EXPECT_THAT(gptq.scales.shape, ElementsAre(2, 9));
  EXPECT_THAT(gptq.zeros.shape, ElementsAre(2, 3));
}

// The lowest bits are the first input. With 17 inputs the last word has one.
TEST(PackedRowsTest, OddNumberOfInputsUnpacks) {
  const std::vector<uint32_t> words = {0x76543210, 0xfedcba98, 0x00000005};
  const std::vector<float> scales = {0.5f};
  const PackedTensors tensors{.weight = {.name = "x.weight", .shape = {1, 17}},
                              .codes = TensorOf(DType::kI32, {1, 3}, words),
                              .scales = TensorOf(DType::kF32, {1, 1}, scales)};
  ThreadPool pool(1);
  const PackedRows rows(pool, tensors);
  std::vector<uint8_t> codes(17);
  rows.ReadCodes(0, codes);
  EXPECT_THAT(codes, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 5));
  EXPECT_EQ(rows.group(), 17);
  std::vector<float> weights(17);
  rows.Dequantize(0, weights);
  EXPECT_EQ(weights[0], -4);
  EXPECT_EQ(weights[16], -1.5f);
}

// FP8 as [inputs, outputs], with scales that lie so, stands for what it does as [outputs, inputs].
TEST(PackedRowsTest, TransposedFloatsAreTheSameNumbers) {
  constexpr int64_t kOutputs = 7, kInputs = 40;
  for (const auto& [group, group_outputs] :
       {std::pair<int64_t, int64_t>{20, 3}, {0, 1}, {0, 0}, {16, 2}}) {
    PackedFormat plain{.layout = Layout::kFloats8, .bits = 8, .group = group};
    plain.group_outputs = group_outputs;
    PackedFormat across = plain;
    across.transposed = true;
    const auto shape = ShapesOf(plain, kOutputs, kInputs).scales.shape;
    const auto turned_shape = ShapesOf(across, kOutputs, kInputs).scales.shape;
    ASSERT_THAT(turned_shape, ElementsAre(shape[1], shape[0]));
    EXPECT_THAT(ShapesOf(across, kOutputs, kInputs).codes.shape, ElementsAre(kInputs, kOutputs));
    std::vector<uint8_t> codes(kOutputs * kInputs), turned(codes.size());
    std::vector<float> scales(shape[0] * shape[1]), turned_scales(scales.size());
    for (int64_t o = 0; o < kOutputs; ++o) {
      for (int64_t i = 0; i < kInputs; ++i) {
        const auto code = static_cast<uint8_t>((o * 31 + i * 7) & 0xbf);
        codes[o * kInputs + i] = turned[i * kOutputs + o] = code;
      }
    }
    for (int64_t row = 0; row < shape[0]; ++row) {
      for (int64_t col = 0; col < shape[1]; ++col) {
        const auto scale = static_cast<float>(1 + row * 10 + col);
        scales[row * shape[1] + col] = turned_scales[col * shape[0] + row] = scale;
      }
    }
    const TensorInfo weight{.name = "x.weight", .shape = {kOutputs, kInputs}};
    const PackedTensors a{.format = plain,
                          .weight = weight,
                          .codes = TensorOf(DType::kU8, {kOutputs, kInputs}, codes),
                          .scales = TensorOf(DType::kF32, shape, scales)};
    const PackedTensors b{.format = across,
                          .weight = weight,
                          .codes = TensorOf(DType::kU8, {kInputs, kOutputs}, turned),
                          .scales = TensorOf(DType::kF32, turned_shape, turned_scales)};
    ThreadPool pool(1);
    const PackedRows rows(pool, a), turned_rows(pool, b);
    std::vector<float> expected(kInputs), found(kInputs);
    for (int64_t o = 0; o < kOutputs; ++o) {
      rows.Dequantize(o, expected);
      turned_rows.Dequantize(o, found);
      EXPECT_EQ(found, expected) << o;
    }
  }
}

// AutoAWQ's order: a word's bits from low to high are the outputs 0, 2, 4, 6, 1, 3, 5, 7.
TEST(PackedRowsTest, AwqUnpacks) {
  std::vector<uint32_t> words(16, 0);
  words[3] = 0x75316420;  // input 3: the code of an output is its number
  const std::vector<uint32_t> zeros = {0x75316420};
  const std::vector<float> scales(8, 2);
  const PackedTensors tensors{.format = {.layout = Layout::kAwq, .group = 16, .zeros = true},
                              .weight = {.name = "x.weight", .shape = {8, 16}},
                              .codes = TensorOf(DType::kI32, {16, 1}, words),
                              .scales = TensorOf(DType::kF32, {1, 8}, scales),
                              .zeros = TensorOf(DType::kI32, {1, 1}, zeros)};
  ThreadPool pool(1);
  const PackedRows rows(pool, tensors);
  for (int64_t output = 0; output < 8; ++output) {
    std::vector<float> weights(16), want(16, -2 * static_cast<float>(output));
    want[3] = 0;
    rows.Dequantize(output, weights);
    EXPECT_THAT(weights, ElementsAreArray(want)) << output;
  }
}

// 5 outputs and 7 inputs in blocks of 2 by 4: the last ones are partial.
TEST(PackedRowsTest, Fp8HasAScaleForEachBlock) {
  std::vector<uint8_t> codes(35, 0x38);  // 1
  codes[34] = 0xfe;                      // the least number
  codes[33] = 0x01;                      // the smallest
  const std::vector<float> scales = {1, 2, 3, 4, 5, 6};
  PackedTensors tensors{
      .format = {.layout = Layout::kFloats8, .bits = 8, .group = 4, .group_outputs = 2},
      .weight = {.name = "x.weight", .shape = {5, 7}},
      .codes = TensorOf(DType::kU8, {5, 7}, codes),
      .scales = TensorOf(DType::kF32, {3, 2}, scales)};
  const PackedShapes shapes = ShapesOf(tensors.format, 5, 7);
  EXPECT_THAT(shapes.scales.shape, ElementsAre(3, 2));
  ThreadPool pool(1);
  const PackedRows rows(pool, tensors);
  std::vector<float> weights(7);
  rows.Dequantize(1, weights);
  EXPECT_THAT(weights, ElementsAre(1, 1, 1, 1, 2, 2, 2));
  rows.Dequantize(2, weights);
  EXPECT_THAT(weights, ElementsAre(3, 3, 3, 3, 4, 4, 4));
  rows.Dequantize(4, weights);
  EXPECT_THAT(weights, ElementsAre(5, 5, 5, 5, 6, 6 * 0x1p-9f, -448 * 6));
  codes[3] = 0x7f;
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { PackedRows(pool, tensors); }),
              testing::HasSubstr("tensor x: element 3 is not a number"));
}

// One scale for all, and one for each output.
TEST(PackedRowsTest, Fp8HasAScaleForATensorOrAnOutput) {
  const std::vector<uint8_t> codes = {0x38, 0x40, 0xb8};  // 1, 2, -1
  const std::vector<float> scales = {3, 5, 7};
  ThreadPool pool(1);
  for (const bool whole : {true, false}) {
    PackedTensors tensors{
        .format = {.layout = Layout::kFloats8, .bits = 8, .group_outputs = whole ? 0 : 1},
        .weight = {.name = "x.weight", .shape = {3, 1}},
        .codes = TensorOf(DType::kU8, {3, 1}, codes),
        .scales = TensorOf(DType::kF32, {3}, scales)};
    const PackedShapes shapes = ShapesOf(tensors.format, 3, 1);
    EXPECT_THAT(shapes.scales.shape, ElementsAre(whole ? 1 : 3, 1));
    const PackedRows rows(pool, tensors);
    std::vector<float> found(3);
    for (size_t row = 0; row < 3; ++row) {
      rows.Dequantize(static_cast<int64_t>(row), std::span(found).subspan(row, 1));
    }
    if (whole) {
      EXPECT_THAT(found, ElementsAre(3, 6, -3));
    } else {
      EXPECT_THAT(found, ElementsAre(3, 10, -7));
    }
  }
}

// Two groups of NVFP4: E4M3 scales of 1.5 and -448 times the factor, the low bits first.
TEST(PackedRowsTest, Nvfp4HasScalesOfEightBits) {
  std::vector<uint8_t> codes(16, 0);
  codes[0] = 0xf1;  // 0.5, -6
  codes[8] = 0x72;  // 1, 6
  std::vector<uint8_t> scales = {0x3c, 0xfe};
  PackedTensors tensors{.format = {.layout = Layout::kFloats4,
                                   .group = 16,
                                   .scale_type = PackedFormat::ScaleType::kE4M3,
                                   .codes_suffix = ".weight_packed"},
                        .weight = {.name = "x.weight", .shape = {1, 32}},
                        .codes = TensorOf(DType::kU8, {1, 16}, codes),
                        .scales = TensorOf(DType::kU8, {1, 2}, scales),
                        .factor = 0.25f};
  const PackedShapes shapes = ShapesOf(tensors.format, 9, 32);
  EXPECT_EQ(shapes.codes.suffix, ".weight_packed");
  EXPECT_THAT(shapes.codes.shape, ElementsAre(9, 16));
  EXPECT_THAT(shapes.scales.shape, ElementsAre(9, 2));
  ThreadPool pool(1);
  const PackedRows rows(pool, tensors);
  std::vector<float> weights(32), want(32, 0);
  want[0] = 0.1875f;
  want[1] = -2.25f;
  want[16] = -112;
  want[17] = -672;
  rows.Dequantize(0, weights);
  EXPECT_THAT(weights, ElementsAreArray(want));
  EXPECT_THAT(rows.Scales(0), ElementsAre(1.5f, -448));
  scales[1] = 0x7f;
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { PackedRows(pool, tensors); }),
              testing::HasSubstr("tensor x: element 1 is nan, expected a finite number"));
}

TEST(PackedRowsTest, Mxfp8HasPowersOfTwo) {
  std::vector<uint8_t> codes(64, 0x38);  // 1
  std::vector<uint8_t> scales = {127, 121};
  PackedTensors tensors{.format = {.layout = Layout::kFloats8,
                                   .bits = 8,
                                   .group = 32,
                                   .scale_type = PackedFormat::ScaleType::kPowers},
                        .weight = {.name = "x.weight", .shape = {1, 64}},
                        .codes = TensorOf(DType::kU8, {1, 64}, codes),
                        .scales = TensorOf(DType::kU8, {1, 2}, scales)};
  ThreadPool pool(1);
  std::vector<float> weights(64);
  PackedRows(pool, tensors).Dequantize(0, weights);
  EXPECT_EQ(weights[31], 1);
  EXPECT_EQ(weights[32], 0x1p-6f);
  scales[0] = 255;
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { PackedRows(pool, tensors); }),
              testing::HasSubstr("tensor x: element 0 is nan"));
}

// The first version stores the zero point minus one; zero becomes all bits.
TEST(PackedRowsTest, ZeroPointsOfGptq) {
  const std::vector<uint32_t> words(16, 0), zeros = {0x76543f10};
  const std::vector<float> scales(8, 1);
  for (const bool first_version : {false, true}) {
    const PackedTensors tensors{
        .format = {.layout = Layout::kGptq, .zeros = true, .zeros_less_1 = first_version},
        .weight = {.name = "x.weight", .shape = {8, 16}},
        .codes = TensorOf(DType::kI32, {2, 8}, words),
        .scales = TensorOf(DType::kF32, {1, 8}, scales),
        .zeros = TensorOf(DType::kI32, {1, 1}, zeros)};
    ThreadPool pool(1);
    const PackedRows rows(pool, tensors);
    std::vector<int> found;
    for (int64_t output = 0; output < 8; ++output) found.push_back(rows.Zeros(output)[0]);
    if (first_version) {
      EXPECT_THAT(found, ElementsAre(1, 2, 0, 4, 5, 6, 7, 8));
    } else {
      EXPECT_THAT(found, ElementsAre(0, 1, 15, 3, 4, 5, 6, 7));
    }
  }
}

TEST(PackedRowsTest, OrdersOfInputs) {
  const auto order = [](const std::vector<int32_t>& groups) {
    return InputOrder(TensorOf(DType::kI32, {std::ssize(groups)}, groups), 2);
  };
  EXPECT_THAT(order({0, 0, 1, 1, 2, 2}), ElementsAre());
  EXPECT_THAT(order({2, 0, 1, 0, 2, 1}), ElementsAre(1, 3, 2, 5, 0, 4));
  EXPECT_EQ(ErrorOf(ErrorKind::kFormat,
                    [&] {
                      order({0, 0, 0, 1, 1, 2});
                    }),
            "tensor x: group 0 has more than 2 inputs");
  EXPECT_EQ(ErrorOf(ErrorKind::kFormat,
                    [&] {
                      order({0, 0, 1, 3, 2, 2});
                    }),
            "tensor x: element 3 is 3, expected one of 3 groups");
}

}  // namespace
}  // namespace godwit::packed_rows_test
