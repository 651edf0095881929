#include "eval/suites/ruler_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "eval/suites/suite_test_support.h"

namespace godwit::eval::ruler_file_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kRow =
    R"({"index": 7, "input": "A number is 1234567.\nWhat is it?", "outputs": ["1234567"], )"
    R"("length": 9, "answer_prefix": " It is"})"
    "\n";
// A row as older versions of the generator write it.
constexpr const char* kPlainRow = R"({"input": "Q? A:", "outputs": ["a", "b"]})"
                                  "\n";

class RulerFileTest : public ::testing::Test {
 protected:
  SampleMaker Open(std::string_view rows, int64_t samples = 1, ChatRender chat = {}) {
    folder_.Write("vt.jsonl", rows);
    pieces_.emplace(coder_, std::move(chat));
    return OpenRulerFile(folder_.path(), samples, {.max_new_tokens = 30, .task = "vt"}, *pieces_);
  }
  std::string Refused(ErrorKind kind, std::string_view rows, int64_t samples = 1) {
    return ErrorOf(kind, [&] { Open(rows, samples); });
  }

  const TempFolder folder_;
  const StreamCoder coder_ = ByteCoder();
  std::optional<PieceMaker> pieces_;
};

TEST_F(RulerFileTest, ThePrefixStandsBehindTheInput) {
  auto make = Open(std::string(kRow) + kPlainRow, 2);
  const Sample sample = make({.length_tokens = 100});
  EXPECT_EQ(TextOf(sample.prompt), "A number is 1234567.\nWhat is it? It is");
  EXPECT_THAT(sample.expected, ElementsAre("1234567"));
  EXPECT_EQ(sample.max_new_tokens, 30);
  const Sample plain = make({.length_tokens = 100, .index = 1});
  EXPECT_EQ(TextOf(plain.prompt), "Q? A:");
  EXPECT_EQ(plain.context_tokens, 1) << "the frame";
  EXPECT_EQ(TextOf(std::span(sample.prompt).subspan(sample.context_tokens)), "What is it? It is");
  EXPECT_THAT(plain.expected, ElementsAre("a", "b"));
}

TEST_F(RulerFileTest, InAChatItStandsBehindTheTemplate) {
  auto make = Open(kRow, 1, [](const std::string& message) { return "<u>" + message + "<a>"; });
  const Sample sample = make({.length_tokens = 100});
  EXPECT_EQ(TextOf(sample.prompt), "<u>A number is 1234567.\nWhat is it?<a> It is");
  EXPECT_EQ(TextOf(std::span(sample.prompt).subspan(sample.context_tokens)),
            "What is it?<a> It is");
}

// A question ends its text, with line ends behind it or without.
TEST_F(RulerFileTest, TheLastLineIsTheQuestion) {
  auto make = Open(R"({"input": "A.\n\nB.\n\nC?\n", "outputs": ["d"]})"
                   "\n");
  const Sample sample = make({.length_tokens = 100});
  EXPECT_EQ(TextOf(std::span(sample.prompt).subspan(sample.context_tokens)), "C?\n");
}

// A BOS, 38 bytes and 30 of the answer.
TEST_F(RulerFileTest, NothingIsCut) {
  auto make = Open(kRow);
  EXPECT_EQ(make({.length_tokens = 69}).prompt.size(), 39u);
  EXPECT_THAT(
      ErrorOf(ErrorKind::kInput, [&] { make({.length_tokens = 68}); }),
      HasSubstr("vt.jsonl:1: prompt and answer take 69 tokens, expected at most the 68 of"));
}

TEST_F(RulerFileTest, BrokenLinesAreNamed) {
  const std::string two = std::string(kRow) + "{\"input\": \"Q\"}\n";
  EXPECT_THAT(Refused(ErrorKind::kFormat, two, 2),
              AllOf(HasSubstr("vt.jsonl:2: "), HasSubstr("\"outputs\", a list of texts")));
  EXPECT_THAT(Refused(ErrorKind::kFormat, "\n"), HasSubstr("vt.jsonl:1"));
  EXPECT_THAT(Refused(ErrorKind::kFormat, "{\"input\": \"Q\", \"outputs\": []}\n"),
              HasSubstr("vt.jsonl:1: expected one or more \"outputs\", found none"));
  EXPECT_THAT(Refused(ErrorKind::kInput, kRow, 2),
              HasSubstr("vt.jsonl: expected 2 samples or more, found 1"));
}

TEST_F(RulerFileTest, TheGeneratorsOwnFoldersComeFirst) {
  EXPECT_EQ(RulerFile(folder_.path(), "cwe"), std::nullopt);
  EXPECT_EQ(RulerFile(folder_.path(), "vt"), std::nullopt);
  const auto file = folder_.Write("vt.jsonl", kRow);
  EXPECT_EQ(RulerFile(folder_.path(), "vt"), file);
  std::filesystem::create_directory(folder_.path() / "vt");
  const auto own = folder_.Write("vt/validation.jsonl", kRow);
  EXPECT_EQ(RulerFile(folder_.path(), "vt"), own);
  EXPECT_THAT(
      ErrorOf(ErrorKind::kIo,
              [&] { OpenRulerFile(folder_.path(), 1, {.task = "fwe"}, PieceMaker(coder_)); }),
      HasSubstr("expected fwe/validation.jsonl or fwe.jsonl"));
}

}  // namespace
}  // namespace godwit::eval::ruler_file_test
