// Tests whole tasks, on a model that knows one word and on a real one.

#include "eval/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/test_support.h"
#include "engine/engine_impl.h"
#include "tests/fake_model.h"
#include "tests/session_of.h"
#include "text/fake_tokenizer.h"

namespace godwit::eval::evaluate_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kVocab = FakeTokenizer::kEos + 1;
constexpr int64_t kAnyLength = std::numeric_limits<int64_t>::max();

std::vector<int32_t> EncodeBytes(std::string_view text) {
  return FakeTokenizer().Encode(text, /*add_special_tokens=*/true);
}

// A model that says " yes" after ":" in any context. Other tokens are e^20 times less probable by
// default.
std::unique_ptr<const Engine::Impl> EngineThatSaysYes(float other_logits = -20) {
  DecoderSpec spec = FakeModel::Spec(kVocab, 100);
  auto model = std::make_unique<FakeModel>(kVocab, [](int32_t token, int64_t) -> int32_t {
    const std::string_view text = ": yes.";
    const size_t at = text.find(static_cast<char>(token));
    return at < text.size() - 1 ? text[at + 1] : '.';
  });
  model->other_logits = other_logits;
  return std::make_unique<const Engine::Impl>(std::move(model), spec,
                                              std::make_unique<FakeTokenizer>(), SpecialTokens{},
                                              LoadOptions{.threads = 1});
}

Session NewSession(const Engine::Impl& engine, const SessionOptions& options = {}) {
  return SessionOf(engine, options);
}

Question YesOrNo(const std::string& context, size_t gold) {
  return {.where = "file:1",
          .choices = {{.context = context, .answer = "no"}, {.context = context, .answer = "yes"}},
          .gold = gold};
}

void Ignore(int64_t) {}

TEST(EvaluateTest, ScoresAreSumsOverTheContinuation) {
  const auto engine = EngineThatSaysYes();
  Session session = NewSession(*engine);
  const double first = -std::log1p((kVocab - 1) * std::exp(-20.0));
  const Score yes = ScorePair(session, EncodePair(EncodeBytes, "Answer:", " yes"));
  EXPECT_NEAR(yes.log_probability, 4 * first, 1e-12);
  EXPECT_TRUE(yes.greedy);
  const Score no = ScorePair(session, EncodePair(EncodeBytes, "Answer:", " no"));
  EXPECT_NEAR(no.log_probability, first + 2 * (first - 20), 1e-12);
  EXPECT_FALSE(no.greedy);
  const Score yet = ScorePair(session, EncodePair(EncodeBytes, "Answer:", " yet"));
  EXPECT_NEAR(yet.log_probability, 3 * first + (first - 20), 1e-12);
  EXPECT_FALSE(yet.greedy);
}

TEST(EvaluateTest, CountsWhatTheModelAnswersRight) {
  const auto engine = EngineThatSaysYes();
  Session session = NewSession(*engine);
  const EncodedTask task =
      EncodeTask(FindTask("boolq"), {YesOrNo("A:", 1), YesOrNo("B:", 1), YesOrNo("C:", 0)},
                 EncodeBytes, session.limit_tokens());
  std::vector<int64_t> done;
  const TaskMetrics metrics =
      EvaluateTask(session, task, [&](int64_t done_tokens) { done.push_back(done_tokens); });
  EXPECT_EQ(metrics.n(), 3);
  EXPECT_DOUBLE_EQ(metrics.acc()->share, 2.0 / 3);
  EXPECT_EQ(*metrics.chance(), 0.5);
  ASSERT_EQ(done.size(), 9u) << "after each of two choices, and after a question";
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_EQ(done.back(), task.read_tokens);
}

TEST(EvaluateTest, ReadsTheContextOfAllChoicesOnce) {
  const auto engine = EngineThatSaysYes();
  Session session = NewSession(*engine);
  const EncodedTask task = EncodeTask(FindTask("boolq"), {YesOrNo("Is it so? Answer:", 1)},
                                      EncodeBytes, session.limit_tokens());
  EvaluateTask(session, task, Ignore);
  const auto& reads = static_cast<const FakeModel&>(*engine->model).reads();
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[0].position, 0);
  EXPECT_EQ(reads[0].tokens, EncodeBytes("Is it so? Answer: n"));
  // The session reads the context's last token again, for its logits.
  EXPECT_EQ(reads[1].position, 17);
  EXPECT_EQ(reads[1].tokens, (std::vector<int32_t>{':', ' ', 'y', 'e'}));
  EXPECT_EQ(task.read_tokens, std::ssize(reads[0].tokens) + std::ssize(reads[1].tokens));
}

TEST(EvaluateTest, SkipsQuestionsThatDoNotFit) {
  const auto engine = EngineThatSaysYes();
  // "<s>A: ye" is 6 tokens. A text of 7, with the last one, is not read at all.
  Session session = NewSession(*engine, {.context_tokens = 6});
  EXPECT_EQ(session.limit_tokens(), 6);
  const EncodedTask task = EncodeTask(FindTask("boolq"), {YesOrNo("A:", 1), YesOrNo("AB:", 1)},
                                      EncodeBytes, session.limit_tokens());
  EXPECT_EQ(task.questions.size(), 1u);
  EXPECT_EQ(task.skipped, 1);
  EXPECT_EQ(EvaluateTask(session, task, Ignore).n(), 1);
  EXPECT_EQ(NewSession(*engine, {.kv = "sinks:1+5"}).limit_tokens(), kAnyLength);
}

TEST(EvaluateTest, ATokenizerThatJoinsNamesTheRow) {
  const auto encode = [](std::string_view) { return std::vector<int32_t>{1, 2}; };
  EXPECT_THAT(
      ErrorOf(ErrorKind::kUnsupported,
              [&] { EncodeTask(FindTask("boolq"), {YesOrNo("A:", 0)}, encode, kAnyLength); }),
      HasSubstr("file:1: "));
}

TEST(EvaluateTest, LogitsThatAreNotNumbersAreRefused) {
  const auto engine = EngineThatSaysYes(NAN);
  Session session = NewSession(*engine);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [&] { ScorePair(session, EncodePair(EncodeBytes, "A:", " no")); }),
              HasSubstr("not numbers"));
}

// The score from every logit of every position, on a session of its own.
Score ScoreOpenly(const Engine& engine, const std::string& context, const std::string& answer) {
  const auto head = engine.Tokenize(context);
  const auto text = engine.Tokenize(context + " " + answer);
  std::vector<std::vector<float>> logits;
  engine.NewSession({.kv_type = "f32"}).Logits(text, [&](int64_t, std::span<const float> row) {
    logits.emplace_back(row.begin(), row.end());
  });
  Score score;
  for (size_t i = head.size(); i < text.size(); ++i) {
    const auto& row = logits[i - 1];
    const auto next = static_cast<size_t>(text[i]);
    long double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<long double>(logit));
    score.log_probability += static_cast<double>(row[next] - std::log(sum));
    for (const float logit : row) score.greedy &= logit <= row[next];
  }
  return score;
}

TEST(EvaluateTest, AgreesWithADirectComputation) {
  const Engine engine(std::string(GODWIT_SOURCE_DIR) + "/tests/data/tiny-llama", {.threads = 2});
  Session session = engine.NewSession({.kv_type = "f32", .chunk_tokens = 3});
  const auto encode = [&](std::string_view text) { return engine.Tokenize(text); };
  bool greedy = false;
  for (const std::string context : {"Once upon a time", "The godwit flew over the"}) {
    for (const std::string answer : {"there was", "sea and the hills", "zebra.", "sea."}) {
      const Score expected = ScoreOpenly(engine, context, answer);
      const Score score = ScorePair(session, EncodePair(encode, context, " " + answer));
      EXPECT_NEAR(score.log_probability, expected.log_probability,
                  1e-9 * std::abs(expected.log_probability) + 1e-9)
          << context << " | " << answer;
      EXPECT_EQ(score.greedy, expected.greedy) << context << " | " << answer;
      greedy |= score.greedy;
    }
  }
  EXPECT_TRUE(greedy) << "nothing here is what the model would say";
}

}  // namespace
}  // namespace godwit::eval::evaluate_test
