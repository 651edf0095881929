#include "base/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace godwit::sha256_test {
namespace {

std::string HashOf(std::string_view text, size_t piece = std::string_view::npos) {
  Sha256 hash;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, piece);
    hash.Add(std::as_bytes(std::span(part)));
    text.remove_prefix(part.size());
  }
  return hash.Hex();
}

// The examples of FIPS 180, and its million letters.
TEST(Sha256Test, IsThatOfTheStandard) {
  EXPECT_EQ(HashOf(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HashOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HashOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(HashOf(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Some bit counts fit behind the last byte, some take another block.
TEST(Sha256Test, EndsAtAnyPlaceOfABlock) {
  std::string text;
  for (int i = 0; i < 120; ++i) text += static_cast<char>(i * 7);
  const std::string_view all = text;
  EXPECT_EQ(HashOf(all.substr(0, 55)),
            "576a1bf8d4478657e6dc4af9398544765c2a92cde28478b019235cfed315fc09");
  EXPECT_EQ(HashOf(all.substr(0, 64)),
            "d8bc63b4fc1156e5e7d95a418b9bf54cd3174bedbc2db40f74895349b229b3c0");
  EXPECT_EQ(HashOf(all.substr(0, 119)),
            "7a6589821178918ca8d9edaba5abfc1e9b2669564f4469b66885379c1530b2c8");
  EXPECT_EQ(HashOf(all.substr(0, 120)),
            "655250427d56b1b0eeb8497d21428704273458a01772d6881b65c0abac0f8a98");
}

// Lengths around the end of a block, and around the point where the count no longer fits.
TEST(Sha256Test, PiecesMakeNoDifference) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 7);
  for (size_t size = 0; size <= text.size(); ++size) {
    const auto part = std::string_view(text).substr(0, size);
    for (const size_t piece : {1, 55, 63, 64, 65}) EXPECT_EQ(HashOf(part, piece), HashOf(part));
  }
}

TEST(Sha256Test, GoesOnBehindItsHex) {
  Sha256 hash;
  const std::string_view text = "abc";
  hash.Add(std::as_bytes(std::span(text.substr(0, 2))));
  EXPECT_EQ(hash.Hex(), HashOf("ab"));
  hash.Add(std::as_bytes(std::span(text.substr(2))));
  EXPECT_EQ(hash.Hex(), HashOf("abc"));
}

}  // namespace
}  // namespace godwit::sha256_test
