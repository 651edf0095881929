#include "model/block_weights.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "weights/safetensors_source.h"
#include "weights/tensor_rows.h"

namespace godwit::block_weights_test {
namespace {

// Random blocks of a type, from tools/make_gguf_goldens.py, as a matrix with two blocks in a row.
class Blocks {
 public:
  explicit Blocks(std::string_view type)
      : golden_(OpenSafetensors(GODWIT_SOURCE_DIR "/tests/golden/gguf/blocks.safetensors")) {
    const BlockFormat& format = *FindBlockFormat(type);
    tensor_ = *golden_->Find(std::string(type) + ".blocks");
    const int64_t row_bytes = 2 * format.bytes;
    const int64_t outputs = std::ssize(tensor_.bytes) / row_bytes;
    tensor_.dtype = std::nullopt;
    tensor_.blocks = &format;
    tensor_.shape = {outputs, 2 * format.elements};
    tensor_.bytes = tensor_.bytes.first(outputs * row_bytes);
  }
  const TensorInfo& tensor() const { return tensor_; }

 private:
  std::unique_ptr<WeightSource> golden_;
  TensorInfo tensor_;
};

// Packs a part in the layer's format, unpacks it, and compares the rows with the numbers of the
// blocks.
void ExpectTheNumbers(const LinearTensors& linear, const TensorInfo& part, double tolerance) {
  const auto format = FormatOfBlocks(linear);
  ASSERT_TRUE(format.has_value());
  ThreadPool pool(2);
  const int64_t outputs = part.shape[0], inputs = part.shape[1];
  ASSERT_GT(outputs, 0);
  const Weight weight = ops::PackGroups(
      pool, *format, outputs, inputs, [&](int64_t output, kernels::GroupedRow& row, float& factor) {
        EXPECT_FALSE(ReadBlocks(part, output, 0, *format, row, factor));
      });
  std::vector<float> got(inputs), want(got.size());
  for (int64_t i = 0; i < outputs; ++i) {
    ops::UnpackRow(weight, i, got.data());
    ReadRow(part, i, want);
    float largest = 0;
    for (const float x : want) largest = std::max(largest, std::fabs(x));
    for (size_t k = 0; k < want.size(); ++k) {
      if (tolerance == 0) {
        ASSERT_EQ(got[k], want[k]) << part.blocks->name << " " << i << ", " << k;
      } else {
        ASSERT_NEAR(got[k], want[k], tolerance * largest)
            << part.blocks->name << " " << i << ", " << k;
      }
    }
  }
}

class BlockWeightsTest : public testing::TestWithParam<BlockFormat> {};

TEST_P(BlockWeightsTest, StandForTheSameNumbers) {
  const Blocks blocks(GetParam().name);
  const double tolerance = GetParam().wide_scales ? 0x1p-36 : 0;
  ExpectTheNumbers({.parts = {&blocks.tensor()}}, blocks.tensor(), tolerance);
}

INSTANTIATE_TEST_SUITE_P(All, BlockWeightsTest,
                         testing::ValuesIn(AllBlockFormats().begin(), AllBlockFormats().end()),
                         [](const auto& info) { return std::string(info.param.name); });

// Numbers are rounded twice here, and once in the file's own order of products.
TEST(BlockWeights, FusedLayersOfSeveralTypesShareAFormat) {
  struct Mixture {
    std::vector<std::string_view> types;
    Codes codes;
  };
  const std::vector<Mixture> mixtures = {
      {{"Q4_K", "Q5_K", "Q6_K"}, Codes::k6}, {{"Q6_K", "Q4_K"}, Codes::k6},
      {{"Q5_K", "Q4_K"}, Codes::k5},         {{"Q2_K", "Q3_K", "Q4_K"}, Codes::k4},
      {{"Q3_K", "Q5_K"}, Codes::k6},         {{"MXFP4", "Q8_0"}, Codes::k8},
      {{"Q4_0", "Q5_0"}, Codes::k5},         {{"Q4_0", "Q5_0", "Q8_0", "IQ4_NL"}, Codes::k8},
      {{"Q4_0", "IQ4_NL"}, Codes::k8}};
  for (const auto& [types, codes] : mixtures) {
    std::vector<Blocks> blocks(types.begin(), types.end());
    LinearTensors linear;
    for (const Blocks& part : blocks) linear.parts.push_back(&part.tensor());
    EXPECT_EQ(FormatOfBlocks(linear)->codes, codes);
    for (const TensorInfo* part : linear.parts) ExpectTheNumbers(linear, *part, 2e-6);
  }
}

TEST(BlockWeights, TakeHardlyMoreMemoryThanInTheFileOr4Bits) {
  for (const BlockFormat& blocks : AllBlockFormats()) {
    TensorInfo tensor;
    tensor.blocks = &blocks;
    const auto format = FormatOfBlocks({.parts = {&tensor}});
    ASSERT_TRUE(format.has_value());
    const int64_t outputs = 128, inputs = 4096;
    const int64_t file_bytes = outputs * inputs / blocks.elements * blocks.bytes;
    // Codes of 2 and 3 bits take 4, and a scale of 8 bits takes 16.
    const int64_t bits_a_thousand = blocks.minimums ? 5'200 : 4'600;
    EXPECT_LE(ops::PackedBytes(*format, outputs, inputs),
              std::max(file_bytes * 105 / 100, outputs * inputs * bits_a_thousand / 8'000))
        << blocks.name;
  }
}

// Kernels multiply no other formats. Two types cover all mixtures, because the longest code and the
// smallest group decide.
TEST(BlockWeights, AllFormatsAreInUse) {
  for (const BlockFormat& one : AllBlockFormats()) {
    for (const BlockFormat& other : AllBlockFormats()) {
      const TensorInfo a{.blocks = &one}, b{.blocks = &other};
      const auto format = FormatOfBlocks({.parts = {&a, &b}});
      EXPECT_TRUE(!format || IsInUse(*format)) << one.name << " and " << other.name;
    }
  }
}

TEST(BlockWeights, OthersHaveNone) {
  const Blocks nested("Q4_K"), table("IQ4_XS"), plain("Q4_0"), minimums("Q4_1");
  const auto none = [](const Blocks& a, const Blocks& b) {
    return !FormatOfBlocks({.parts = {&a.tensor(), &b.tensor()}}).has_value();
  };
  EXPECT_TRUE(none(nested, plain));
  EXPECT_TRUE(none(nested, table));
  EXPECT_TRUE(none(plain, minimums));
  const TensorInfo floats{.dtype = DType::kF32, .shape = {1, 32}};
  EXPECT_FALSE(FormatOfBlocks({.parts = {&floats}}).has_value());
  EXPECT_FALSE(FormatOfBlocks({.parts = {&plain.tensor(), &floats}}).has_value());
  EXPECT_FALSE(FormatOfBlocks({}).has_value());
}

TEST(BlockWeights, NanScaleIsReported) {
  std::vector<std::byte> bytes(18);
  bytes[1] = std::byte{0x7e};  // NaN in F16
  const TensorInfo tensor{
      .blocks = FindBlockFormat("Q4_0"), .shape = {1, 32}, .bytes = std::span(bytes)};
  const auto format = FormatOfBlocks({.parts = {&tensor}});
  kernels::GroupedRow row = kernels::NewGroupedRow(*format, 32);
  float factor = 1;
  EXPECT_TRUE(ReadBlocks(tensor, 0, 0, *format, row, factor));
  EXPECT_EQ(factor, 1);
}

}  // namespace
}  // namespace godwit::block_weights_test
