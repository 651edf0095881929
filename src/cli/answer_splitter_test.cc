#include "cli/answer_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace godwit::cli::answer_splitter_test {
namespace {

using testing::ElementsAre;

struct Parts {
  std::vector<std::string> order;
  std::string text, thought;
};

// Writes the text in pieces of `bytes`, and marks the tokens that are reasoning.
Parts Split(std::string_view text, int64_t thought_tokens, size_t bytes, bool open = false) {
  Parts parts;
  const auto note = [&](const std::string& what) {
    if (parts.order.empty() || parts.order.back() != what) parts.order.push_back(what);
  };
  AnswerSplitter answer(
      chat::FormOf(open ? "a:<think>\n" : "a:", /*is_token=*/{}),
      {.on_text = [&](std::string_view) { note("text"); },
       .on_thought = [&](std::string_view) { note("thought"); },
       .on_thought_end = [&](int64_t tokens) { note(fmt::format("end {}", tokens)); }});
  for (size_t at = 0; at < text.size(); at += bytes) {
    answer.Take({.text = std::string(text.substr(at, bytes)), .thought_tokens = thought_tokens});
  }
  answer.Take({.done = true});
  answer.Finish();
  parts.text = answer.text();
  parts.thought = answer.thought();
  return parts;
}

TEST(AnswerSplitter, ThoughtsEndBeforeTheAnswer) {
  for (const size_t bytes : {1, 3, 100}) {
    const Parts parts = Split("<think>\nHm, 2.\n</think>\n\nTwo.", 7, bytes);
    EXPECT_EQ(parts.thought, "Hm, 2.");
    EXPECT_EQ(parts.text, "Two.");
    EXPECT_THAT(parts.order, ElementsAre("thought", "end 7", "text"));
  }
}

TEST(AnswerSplitter, OneThatIsCutOffInItsThoughtHasNoAnswer) {
  const Parts parts = Split("Hm, two or", 4, 3, /*open=*/true);
  EXPECT_EQ(parts.thought, "Hm, two or");
  EXPECT_EQ(parts.text, "");
  EXPECT_THAT(parts.order, ElementsAre("thought", "end 4"));
}

TEST(AnswerSplitter, WithoutAThoughtAllIsTheAnswer) {
  const Parts parts = Split("  <b>Two.</b>\n", 0, 2);
  EXPECT_EQ(parts.thought, "");
  EXPECT_EQ(parts.text, "  <b>Two.</b>\n");
  EXPECT_THAT(parts.order, ElementsAre("text"));
}

}  // namespace
}  // namespace godwit::cli::answer_splitter_test
