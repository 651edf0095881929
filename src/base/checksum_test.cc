#include "base/checksum.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace godwit::checksum_test {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// Values of the library's own test vectors.
TEST(ChecksumTest, IsXxh3) {
  EXPECT_EQ(Checksum(Bytes("")), 0x2d06800538d394c2u);
  EXPECT_EQ(ContentName({}), "99aa06d3014798d86001c324468d497f");
}

TEST(ChecksumTest, EveryBitCounts) {
  std::vector<std::byte> bytes(1000);
  const uint64_t before = Checksum(bytes);
  for (const size_t at : {0, 1, 500, 998, 999}) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] ^= std::byte{1} << bit;
      EXPECT_NE(Checksum(bytes), before) << at << " " << bit;
      bytes[at] ^= std::byte{1} << bit;
    }
  }
}

TEST(ChecksumTest, ANameTellsPartsApart) {
  EXPECT_EQ(ContentName({Bytes("ab"), Bytes("c")}).size(), 32u);
  EXPECT_EQ(ContentName({Bytes("ab"), Bytes("c")}), ContentName({Bytes("ab"), Bytes("c")}));
  EXPECT_NE(ContentName({Bytes("ab"), Bytes("c")}), ContentName({Bytes("a"), Bytes("bc")}));
  EXPECT_NE(ContentName({Bytes("abc")}), ContentName({Bytes("abc"), Bytes("")}));
}

}  // namespace
}  // namespace godwit::checksum_test
