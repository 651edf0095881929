// ARC in a stream, on a model that takes the choice it is told to.

#include "eval/stream_arc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "eval/stream_test_support.h"

namespace godwit::eval::stream_arc_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

Question Ask(const std::string& question, std::vector<std::string> choices, size_t gold) {
  Question asked{.where = "file:1", .gold = gold};
  for (std::string& choice : choices) {
    asked.choices.push_back(
        {.context = "Question: " + question + "\nAnswer:", .answer = std::move(choice)});
  }
  return asked;
}

const std::vector<Question>& Questions() {
  static const std::vector<Question> kQuestions = {
      Ask("What is ice?", {"Air", "Solid water ", "Rock"}, 1),
      Ask("What flies?", {"A godwit", "A stone"}, 0),
      Ask("What is wet?", {"sand", "Water"}, 1),
      Ask("What swims?", {"a stone", "a fish"}, 1),
  };
  return kQuestions;
}

// The second choice of the last question.
std::string SecondChoice(const std::string& text, int64_t) {
  const size_t first = text.find("\n- ", text.rfind("Question: "));
  const size_t second = text.find("\n- ", first + 1) + 3;
  return " " + text.substr(second, text.find('\n', second) - second) + " ";
}

std::unique_ptr<const Engine::Impl> NewEngine() {
  return EngineThatAnswers(std::make_unique<AnsweringModel>("Answer:", 0, SecondChoice), 1000);
}

TEST(StreamArcTest, ThePromptShowsTheChoices) {
  EXPECT_EQ(StreamArcPrompt(Questions()[0]),
            "Question: What is ice?\n- Air\n- Solid water\n- Rock\nAnswer:");
}

TEST(StreamArcTest, CountsWhatIsRightToTheLetter) {
  for (const char* kv : {"dense", "sinks:0+60"}) {
    const auto engine = NewEngine();
    Session session = NewSession(*engine, {.kv = kv, .chunk_tokens = 32});
    StreamArcOptions options;
    std::vector<StreamAnswer> answers;
    options.on_answer = [&](const StreamAnswer& answer) { answers.push_back(answer); };
    int64_t last = 0;
    options.on_progress = [&](int64_t done_tokens, int64_t total_tokens) {
      EXPECT_LE(last, done_tokens);
      last = done_tokens;
      EXPECT_LE(done_tokens, total_tokens);
    };
    const auto result = MeasureStreamArc(session, ByteCoder(), Questions(), options);
    EXPECT_EQ(result.questions, 4);
    EXPECT_EQ(result.right, 3);
    ASSERT_EQ(answers.size(), 4u);
    EXPECT_EQ(answers[0].answer, "Solid water");
    EXPECT_TRUE(answers[0].right);
    EXPECT_EQ(answers[1].row, 1);
    EXPECT_EQ(answers[1].expected, "A godwit");
    EXPECT_EQ(answers[1].answer, "A stone");
    EXPECT_FALSE(answers[1].right);
    const Reads reads = ReadsOf(*engine);
    EXPECT_TRUE(reads.text.starts_with(
        "\x01Question: What is ice?\n- Air\n- Solid water\n- Rock\nAnswer: Solid water \n"
        "Question: What flies?\n- A godwit\n- A stone\nAnswer: A stone \nQuestion: "))
        << reads.text;
    EXPECT_THAT(reads.times, Each(1)) << kv;
    EXPECT_EQ(answers[0].position, static_cast<int64_t>(reads.text.find("Answer:")) + 6);
  }
}

TEST(StreamArcTest, TheRightAnswerCanBeFed) {
  const auto engine = NewEngine();
  Session session = NewSession(*engine, {});
  MeasureStreamArc(session, ByteCoder(), Questions(), {.stream = {.feed = Feed::kGold}});
  EXPECT_THAT(FakeTokenizer().Decode(session.tokens(), true),
              HasSubstr("- A stone\nAnswer: A godwit\nQuestion: What is wet?"));
}

TEST(StreamArcTest, RefusedBeforeAnyWork) {
  const auto engine = NewEngine();
  Session session = NewSession(*engine, {.context_tokens = 200});
  EXPECT_THAT(
      ErrorOf(ErrorKind::kInput, [&] { MeasureStreamArc(session, ByteCoder(), Questions(), {}); }),
      HasSubstr("context holds 200"));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput,
                      [&] {
                        MeasureStreamArc(session, ByteCoder(), Questions(),
                                         {.stream = {.max_new_tokens = 0}});
                      }),
              HasSubstr("at least 1"));
  EXPECT_EQ(session.kv().seen, 0);
}

}  // namespace
}  // namespace godwit::eval::stream_arc_test
