#include "kv/saved_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/error.h"
#include "base/new_file.h"
#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::saved_index_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void Write(const fs::path& path, const TextIndex& index) {
  NewFile file(path);
  WriteIndex(file, index);
  file.Commit();
}

TEST(SavedIndexTest, ComesBack) {
  const TempFolder temp;
  const std::string large(1000, 'x');
  Write(temp.path() / "a",
        {.kind = "signs", .tokens = 640, .parts = {Bytes("levels"), Bytes(""), Bytes(large)}});
  SavedIndex saved(temp.path() / "a");
  EXPECT_EQ(saved.index().kind, "signs");
  EXPECT_EQ(saved.index().tokens, 640);
  ASSERT_EQ(saved.index().parts.size(), 3u);
  EXPECT_EQ(TextOf(saved.index().parts[0]), "levels");
  EXPECT_EQ(TextOf(saved.index().parts[1]), "");
  EXPECT_EQ(TextOf(saved.index().parts[2]), large);
  saved.Limit(1000);
  EXPECT_EQ(saved.index().tokens, 640);
  saved.Limit(64);
  EXPECT_EQ(saved.index().tokens, 64);
  Write(temp.path() / "b", {.kind = "", .tokens = 0, .parts = {}});
  EXPECT_TRUE(SavedIndex(temp.path() / "b").index().parts.empty());
}

// Damages every byte except the zeros behind parts, and tries every length.
TEST(SavedIndexTest, DamageIsRefused) {
  const TempFolder temp;
  Write(temp.path() / "good", {.kind = "k", .tokens = 64, .parts = {Bytes("abc"), Bytes("d")}});
  std::ifstream stream(temp.path() / "good", std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(stream), {}};
  const auto refuses = [&](const std::string& content) {
    const fs::path path = temp.Write("bad", content);
    const Error error = ErrorOf([&] { SavedIndex{path}; });
    EXPECT_THAT(error.what(), HasSubstr("/bad: "));
    EXPECT_THAT(error.what(), AnyOf(HasSubstr("damaged: "), HasSubstr("of version ")));
  };
  // The start of 40 bytes, two parts of 16 and the kind come first. Then come the contents of the
  // parts.
  for (const auto& [begin, end] : {std::pair<size_t, size_t>{0, 73}, {128, 131}, {192, 193}}) {
    for (size_t at = begin; at < end; ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 4);
      refuses(bad);
    }
  }
  for (size_t size = 1; size < good.size(); ++size) refuses(good.substr(0, size));
  refuses(good + "more");
}

}  // namespace
}  // namespace godwit::saved_index_test
