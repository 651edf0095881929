#include "tensor/float_bytes.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace godwit::float_bytes_test {
namespace {

TEST(FloatBytes, ThereAndBackAtAnyAlignment) {
  const std::vector<float> values = {0, -1.5f, 0.25f, 1024, -0x1p-10f};  // exact in all types
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    std::vector<std::byte> bytes(values.size() * SizeOf(dtype) + 1);
    WriteFloats(values, dtype, bytes.data() + 1);
    std::vector<float> back(values.size());
    ReadFloats(dtype, bytes.data() + 1, back);
    EXPECT_EQ(back, values) << Name(dtype);
  }
}

TEST(FloatBytes, RoundsToTheNearest) {
  const std::vector<float> values = {1 + 0x1p-8f, 1 + 0x1.8p-8f};  // a tie, and a number beyond it
  std::vector<std::byte> bytes(4);
  WriteFloats(values, DType::kBF16, bytes.data());
  std::vector<float> back(2);
  ReadFloats(DType::kBF16, bytes.data(), back);
  EXPECT_EQ(back, (std::vector<float>{1, 1 + 0x1p-7f}));
}

TEST(FloatBytes, NanIsFoundWhereverItIs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    std::vector<std::byte> bytes(5 * SizeOf(dtype) + 1);
    const std::vector<float> none = {0, -infinity, infinity, -0.0f, 1};
    WriteFloats(none, dtype, bytes.data() + 1);
    EXPECT_FALSE(HasNan(dtype, bytes.data() + 1, 5)) << Name(dtype);
    for (size_t at = 0; at < none.size(); ++at) {
      for (const float one : {nan, -nan}) {
        std::vector<float> values = none;
        values[at] = one;
        WriteFloats(values, dtype, bytes.data() + 1);
        EXPECT_TRUE(HasNan(dtype, bytes.data() + 1, 5)) << Name(dtype) << " at " << at;
      }
    }
  }
  const std::vector<std::byte> ones(8, std::byte{0xff});
  EXPECT_FALSE(HasNan(DType::kI8, ones.data(), 8));
}

}  // namespace
}  // namespace godwit::float_bytes_test
