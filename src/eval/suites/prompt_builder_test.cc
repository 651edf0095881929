#include "eval/suites/prompt_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/stream_test_support.h"

namespace godwit::eval::prompt_builder_test {
namespace {

using ::testing::ElementsAre;

// A tokenizer that joins newlines, and a word with the blank before it, as most do. A token's id is
// the length of its text.
StreamCoder JoiningCoder() {
  return {.frame = {100},
          .encode =
              [](std::string_view text) {
                std::vector<int32_t> tokens;
                for (size_t begin = 0; begin < text.size();) {
                  size_t end = begin + 1;
                  const bool newline = text[begin] == '\n';
                  while (end < text.size() && text[end] != ' ' && (text[end] == '\n') == newline) {
                    ++end;
                  }
                  tokens.push_back(static_cast<int32_t>(end - begin) + (newline ? 50 : 0));
                  begin = end;
                }
                return tokens;
              },
          .decode = {}};
}

TEST(PromptBuilderTest, PiecesThatMeetNewlinesAreJoined) {
  const StreamCoder coder = JoiningCoder();
  const PieceMaker pieces(coder);
  PromptBuilder builder(pieces);
  EXPECT_EQ(builder.Append(pieces.MakeFirst("ab\n")), 1);
  EXPECT_EQ(builder.Append(pieces.Make("cde\n")), 3);
  EXPECT_EQ(builder.Append(pieces.Make("\nf")), 3);  // with the line before
  EXPECT_EQ(builder.Append(pieces.Make(" gh")), 6);
  const auto whole = coder.encode("ab\ncde\n\nf gh");
  auto tokens = builder.Take();
  EXPECT_EQ(tokens.front(), 100);
  tokens.erase(tokens.begin());
  EXPECT_EQ(tokens, whole);
  EXPECT_THAT(tokens, ElementsAre(2, 51, 3, 52, 1, 3));
}

// A tokenizer that separates the last newline before a word, as GPT-2's rules do. A token is a
// number of newlines, or one other character.
StreamCoder Gpt2Coder() {
  return {.frame = {},
          .encode =
              [](std::string_view text) {
                std::vector<int32_t> tokens;
                while (!text.empty()) {
                  size_t run = std::min(text.find_first_not_of('\n'), text.size());
                  if (run > 1 && run < text.size()) --run;
                  tokens.push_back(run == 0 ? text.front() : static_cast<int32_t>(run));
                  text.remove_prefix(std::max<size_t>(run, 1));
                }
                return tokens;
              },
          .decode = {}};
}

TEST(PromptBuilderTest, LineEndsAreThoseBeforeAWordButForThePromptsLast) {
  const StreamCoder coder = Gpt2Coder();
  const PieceMaker pieces(coder);
  PromptBuilder builder(pieces);
  builder.Append(pieces.MakeFirst("b\n\n\n"));
  EXPECT_EQ(builder.Append(pieces.Make("c\n\n")), 3);
  builder.Append(pieces.MakeLast("d\n\n"));
  EXPECT_THAT(builder.Take(), ElementsAre('b', 2, 1, 'c', 1, 1, 'd', 2));
}

// Tokens that the question changes belong to it; others of a joined piece do not.
TEST(PromptBuilderTest, AQuestionBeginsWithTheFirstTokenThatItChanges) {
  const StreamCoder coder = Gpt2Coder();
  const PieceMaker pieces(coder);
  PromptBuilder joined(pieces);
  joined.Append(pieces.MakeFirst("ab\n"));
  joined.Append(pieces.Make("cd\n"));
  EXPECT_EQ(joined.AppendQuestion(pieces.MakeLast("\n\nq")), 5);
  EXPECT_THAT(joined.Take(), ElementsAre('a', 'b', 1, 'c', 'd', 2, 1, 'q'));
  PromptBuilder apart(pieces);
  apart.Append(pieces.MakeFirst("ab\n"));
  EXPECT_EQ(apart.AppendQuestion(pieces.MakeLast("q")), 3);
  PromptBuilder alone(pieces);
  EXPECT_EQ(alone.AppendQuestion(pieces.MakeLast("q")), 0);
}

}  // namespace
}  // namespace godwit::eval::prompt_builder_test
