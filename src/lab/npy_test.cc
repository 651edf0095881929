#include "lab/npy.h"

#include <gtest/gtest.h>

namespace godwit::lab::npy_test {
namespace {

TEST(Npy, HeaderIsVersion1) {
  const std::string header = NpyHeader(3, 512);
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const auto length = static_cast<size_t>(static_cast<unsigned char>(header[8])) +
                      256 * static_cast<size_t>(static_cast<unsigned char>(header[9]));
  EXPECT_EQ(header.size(), 10 + length);
  EXPECT_EQ(header.back(), '\n');
  EXPECT_EQ(header.substr(10, 61), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 512), }");
}

TEST(Npy, HeaderIsAligned) {
  for (int64_t rows = 1; rows < INT64_MAX / 10; rows *= 10) {
    EXPECT_EQ(NpyHeader(rows, 7).size() % 64, 0u);
  }
}

}  // namespace
}  // namespace godwit::lab::npy_test
