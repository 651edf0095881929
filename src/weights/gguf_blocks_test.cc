#include "weights/gguf_blocks.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "weights/gguf_types.h"
#include "weights/safetensors_source.h"

namespace godwit::gguf_blocks_test {
namespace {

constexpr const char* kGolden = GODWIT_SOURCE_DIR "/tests/golden/gguf/blocks.safetensors";

class GgufBlocksTest : public testing::TestWithParam<BlockFormat> {};

// tools/make_gguf_goldens.py writes random blocks and their values by gguf's Python package.
TEST_P(GgufBlocksTest, RowsHaveTheBitsOfTheReference) {
  const BlockFormat& format = GetParam();
  const auto golden = OpenSafetensors(kGolden);
  const TensorInfo* blocks = golden->Find(std::string(format.name) + ".blocks");
  const TensorInfo* values = golden->Find(std::string(format.name) + ".values");
  ASSERT_TRUE(blocks != nullptr && values != nullptr);
  const int64_t columns = values->shape[1];
  ASSERT_EQ(blocks->shape[1] * format.elements, columns * format.bytes);
  std::vector<float> row(columns);
  for (int64_t i = 0; i < values->shape[0]; ++i) {
    DequantizeRow(format, blocks->bytes.data() + i * blocks->shape[1], row);
    const std::byte* expected = values->bytes.data() + i * columns * int64_t{sizeof(float)};
    for (int64_t j = 0; j < columns; ++j) {
      uint32_t bits = 0;
      std::memcpy(&bits, expected + j * int64_t{sizeof(float)}, sizeof(bits));
      ASSERT_EQ(std::bit_cast<uint32_t>(row[j]), bits) << i << ", " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufBlocksTest,
                         testing::ValuesIn(AllBlockFormats().begin(), AllBlockFormats().end()),
                         [](const auto& info) { return std::string(info.param.name); });

// The table that checks a file and the table that reads its rows agree.
TEST(GgufTypes, SizesAreThoseOfTheBlocks) {
  size_t built = 0;
  for (uint32_t number = 0; number < 64; ++number) {
    const GgufTensorType* type = FindGgufTensorType(number);
    if (type == nullptr) continue;
    if (type->dtype) {
      EXPECT_EQ(type->bytes, static_cast<int64_t>(SizeOf(*type->dtype))) << type->name;
      EXPECT_EQ(type->elements, 1) << type->name;
    }
    const BlockFormat* format = FindBlockFormat(type->name);
    if (format == nullptr) continue;
    ++built;
    EXPECT_EQ(format->elements, type->elements) << type->name;
    EXPECT_EQ(format->bytes, type->bytes) << type->name;
  }
  EXPECT_EQ(built, AllBlockFormats().size());
}

}  // namespace
}  // namespace godwit::gguf_blocks_test
