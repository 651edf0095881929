#include "base/utf8.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit::utf8_test {
namespace {

TEST(Utf8, KeepsWhatIsValid) {
  const std::string text("a\0é海🐦\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80", 21);
  EXPECT_EQ(ReplaceInvalidUtf8(text), text);
}

// Expected results are those of Python's bytes.decode(errors="replace").
TEST(Utf8, ReplacesEveryMaximalMalformedPartOnce) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"\xff", "�"},
      {"a\x80z", "a�z"},
      {"\xc0\xaf", "��"},
      {"\xe2\x82", "�"},
      {"\xe2\x82z", "�z"},
      {"\xf0\x9f\x90", "�"},
      {"\xf0\x9f\x90\xf0\x9f\x90\xa6", "�🐦"},
      {"\xed\xa0\x80", "���"},
      {"\xe0\x80\x80", "���"},
      {"\xf4\x90\x80\x80", "����"},
      {"\xf5\x80", "��"},
      {"\xf0\x80\x80\x80", "����"},
      {"\xc3\x28", "�("},
  };
  for (const auto& [bytes, expected] : cases) EXPECT_EQ(ReplaceInvalidUtf8(bytes), expected);
}

TEST(Utf8, FindsTheFirstMalformedPart) {
  EXPECT_EQ(FirstInvalidUtf8(""), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("a\xc3\xa9\xf0\x9f\x90\xa6"), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("a\xc3\xa9\xff\xff"), 3);
  EXPECT_EQ(FirstInvalidUtf8("ab\xed\xa0\x80"), 2);  // a surrogate
  EXPECT_EQ(FirstInvalidUtf8("ab\xf0\x9f\x90"), 2);  // cut off
}

TEST(Utf8, PiecesAddUpToTheWhole) {
  std::mt19937 random(7);
  const std::string_view alphabet = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xa6\xff\xed\xa0\xf4\x90";
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 12; ++i) bytes += alphabet[random() % alphabet.size()];
    Utf8Repair repair;
    std::string pieces;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = random() % 4;
      const std::string piece = repair.Push(std::string_view(bytes).substr(at, size));
      EXPECT_EQ(ReplaceInvalidUtf8(piece), piece);
      pieces += piece;
      at += size;
    }
    EXPECT_EQ(pieces + repair.Finish(), ReplaceInvalidUtf8(bytes));
    EXPECT_EQ(repair.Finish(), "");
  }
}

TEST(Utf8, CutsNoCharacter) {
  const std::string_view text = "a\u00fc\u6d77\U0001f426";  // of 1, 2, 3 and 4 bytes
  const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t bytes = 0; bytes < std::size(whole); ++bytes) {
    EXPECT_EQ(FirstCharacters(text, bytes).size(), whole[bytes]) << bytes;
  }
}

}  // namespace
}  // namespace godwit::utf8_test
