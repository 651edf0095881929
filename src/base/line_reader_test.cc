#include "base/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::line_reader_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Line {
  std::string text;
  int64_t number, offset;
  bool has_newline;
  bool operator==(const Line&) const = default;
};

std::vector<Line> LinesOf(std::string_view content, size_t max_line_bytes = 1 << 20) {
  const TempFolder folder;
  LineReader reader(folder.Write("lines", content), max_line_bytes);
  std::vector<Line> lines;
  while (const auto line = reader.Next()) {
    lines.push_back(
        {std::string(*line), reader.number(), reader.offset_bytes(), reader.has_newline()});
  }
  return lines;
}

TEST(LineReaderTest, GivesEveryLine) {
  EXPECT_THAT(LinesOf(""), ElementsAre());
  EXPECT_THAT(LinesOf("\n"), ElementsAre(Line{"", 1, 0, true}));
  EXPECT_THAT(LinesOf("a\n\nbc"),
              ElementsAre(Line{"a", 1, 0, true}, Line{"", 2, 2, true}, Line{"bc", 3, 3, false}));
}

// The size of the pieces in which the file is read changes nothing.
TEST(LineReaderTest, LinesMayBeLongerThanWhatIsReadAtOnce) {
  std::string content;
  std::vector<Line> expected;
  for (const size_t bytes : {1, 262143, 262144, 0, 700000, 3, 262145, 1000000, 2}) {
    const std::string text(bytes, static_cast<char>('a' + expected.size()));
    expected.push_back(
        {text, std::ssize(expected) + 1, static_cast<int64_t>(content.size()), true});
    content += text + "\n";
  }
  EXPECT_EQ(LinesOf(content), expected);
}

TEST(LineReaderTest, RefusesALineThatIsTooLong) {
  EXPECT_EQ(LinesOf("12345\n12345", 5).size(), 2);
  for (const std::string_view content : {"12\n123456\n", "12\n123456"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { LinesOf(content, 5); }),
                HasSubstr("lines:2: a line of more than 5 bytes"));
  }
  // A file without a newline is not read to its end.
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { LinesOf(std::string(5 << 20, 'x'), 5); }),
              HasSubstr("lines:1: a line of more"));
}

TEST(LineReaderTest, RefusesWhatIsNoFile) {
  const TempFolder folder;
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { LineReader(folder.path(), 9); }),
              HasSubstr("found a folder"));
}

}  // namespace
}  // namespace godwit::line_reader_test
