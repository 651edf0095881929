#include "cli/chat/message_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "base/test_support.h"

namespace godwit::cli::message_reader_test {
namespace {

class ScriptedLines : public console::LineSource {
 public:
  explicit ScriptedLines(std::deque<console::Line> lines) : lines_(std::move(lines)) {}
  console::Line Read(const std::string& prompt) override {
    prompts += prompt;
    if (lines_.empty()) return {.kind = console::Line::Kind::kEnd, .text = ""};
    const console::Line line = lines_.front();
    lines_.pop_front();
    return line;
  }
  std::string prompts;

 private:
  std::deque<console::Line> lines_;
};

ScriptedLines Lines(std::vector<std::string> texts) {
  std::deque<console::Line> lines;
  for (std::string& text : texts) lines.push_back({.text = std::move(text)});
  return ScriptedLines(std::move(lines));
}

TEST(MessageReader, LinesWithoutEndAreNoMessage) {
  class Endless : public console::LineSource {
   public:
    console::Line Read(const std::string&) override {
      return {.text = std::string(1 << 20, 'a') + "\\"};
    }
  } lines;
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ReadMessage(lines); }),
              testing::HasSubstr("more than 64 MiB"));
}

TEST(MessageReader, ALineIsAMessage) {
  auto lines = Lines({"one", "two"});
  EXPECT_EQ(ReadMessage(lines).text, "one");
  const auto two = ReadMessage(lines);
  EXPECT_EQ(two.text, "two");
  EXPECT_TRUE(two.single);
  EXPECT_EQ(ReadMessage(lines).kind, console::Line::Kind::kEnd);
  EXPECT_EQ(lines.prompts, "> > > ");
}

TEST(MessageReader, ABackslashContinues) {
  auto lines = Lines({"one\\", "two\\", "three", "four"});
  const auto message = ReadMessage(lines);
  EXPECT_EQ(message.text, "one\ntwo\nthree");
  EXPECT_FALSE(message.single);
  EXPECT_EQ(lines.prompts, "> . . ");
}

TEST(MessageReader, QuotesTakeLinesLiterally) {
  auto lines = Lines({"\"\"\"", "one\\", "", "/help", "\"\"\"", "next"});
  EXPECT_EQ(ReadMessage(lines).text, "one\\\n\n/help\n");
  EXPECT_EQ(ReadMessage(lines).text, "next");
}

TEST(MessageReader, QuotesMayStandOnTheTextsLines) {
  auto lines = Lines({"\"\"\"one", "two\"\"\"", "\"\"\"/help\"\"\""});
  EXPECT_EQ(ReadMessage(lines).text, "one\ntwo");
  const auto literal = ReadMessage(lines);
  EXPECT_EQ(literal.text, "/help");
  EXPECT_FALSE(literal.single);
}

TEST(MessageReader, TakesWhatIsThereAtTheEnd) {
  auto lines = Lines({"one\\"});
  EXPECT_EQ(ReadMessage(lines).text, "one\n");
  EXPECT_EQ(ReadMessage(lines).kind, console::Line::Kind::kEnd);
}

TEST(MessageReader, PastedNewlinesBelongToTheMessage) {
  ScriptedLines lines({{.text = "one", .pasted = true}, {.text = "two"}});
  const auto message = ReadMessage(lines);
  EXPECT_EQ(message.text, "one\ntwo");
  EXPECT_FALSE(message.single);
}

TEST(MessageReader, CtrlCTakesTheWholeMessageBack) {
  ScriptedLines lines(
      {{.text = "one\\"}, {.kind = console::Line::Kind::kInterrupted, .text = "tw"}});
  const auto message = ReadMessage(lines);
  EXPECT_EQ(message.kind, console::Line::Kind::kInterrupted);
  EXPECT_EQ(message.text, "tw");
}

}  // namespace
}  // namespace godwit::cli::message_reader_test
