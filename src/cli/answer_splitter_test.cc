#include "cli/answer_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace godwit::cli::answer_splitter_test {
namespace {

using testing::ElementsAre;

struct Told {
  std::vector<std::string> order;
  std::string text, thought;
};

// Writes the text in pieces of `bytes`, and marks the tokens that are reasoning.
Told Tell(std::string_view text, int64_t thought_tokens, size_t bytes, bool open = false) {
  Told told;
  const auto note = [&](const std::string& what) {
    if (told.order.empty() || told.order.back() != what) told.order.push_back(what);
  };
  AnswerSplitter answer(
      chat::FormOf(open ? "a:<think>\n" : "a:", /*bracketed=*/false),
      {.on_text = [&](std::string_view) { note("text"); },
       .on_thought = [&](std::string_view) { note("thought"); },
       .on_thought_end = [&](int64_t tokens) { note(fmt::format("end {}", tokens)); }});
  for (size_t at = 0; at < text.size(); at += bytes) {
    answer.Take({.text = std::string(text.substr(at, bytes)), .thought_tokens = thought_tokens});
  }
  answer.Take({.done = true});
  answer.Finish();
  told.text = answer.text();
  told.thought = answer.thought();
  return told;
}

TEST(AnswerSplitter, ThoughtsEndBeforeTheAnswer) {
  for (const size_t bytes : {1, 3, 100}) {
    const Told told = Tell("<think>\nHm, 2.\n</think>\n\nTwo.", 7, bytes);
    EXPECT_EQ(told.thought, "Hm, 2.");
    EXPECT_EQ(told.text, "Two.");
    EXPECT_THAT(told.order, ElementsAre("thought", "end 7", "text"));
  }
}

TEST(AnswerSplitter, OneThatIsCutOffInItsThoughtHasNoAnswer) {
  const Told told = Tell("Hm, two or", 4, 3, /*open=*/true);
  EXPECT_EQ(told.thought, "Hm, two or");
  EXPECT_EQ(told.text, "");
  EXPECT_THAT(told.order, ElementsAre("thought", "end 4"));
}

TEST(AnswerSplitter, WithoutAThoughtAllIsTheAnswer) {
  const Told told = Tell("  <b>Two.</b>\n", 0, 2);
  EXPECT_EQ(told.thought, "");
  EXPECT_EQ(told.text, "  <b>Two.</b>\n");
  EXPECT_THAT(told.order, ElementsAre("text"));
}

}  // namespace
}  // namespace godwit::cli::answer_splitter_test
