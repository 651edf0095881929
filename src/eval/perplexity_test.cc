#include "eval/perplexity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/test_support.h"
#include "engine/engine_impl.h"
#include "eval/scored_leading_tokens.h"
#include "tests/fake_model.h"
#include "tests/session_of.h"

namespace godwit::eval::perplexity_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Texts = std::vector<std::vector<int32_t>>;

constexpr int32_t kVocab = 11;
// NLLs from the fake model's logits: 0 for the predicted token, -20 for the others.
const double kRight = std::log(1 + 10 * std::exp(-20.0));
const double kWrong = 20 + kRight;

// A model that predicts the last token plus one, and sessions with it.
class PerplexityTest : public testing::Test {
 protected:
  void SetUp() override { MakeEngine({}); }

  void MakeEngine(std::optional<int32_t> sink_token) {
    DecoderSpec spec = FakeModel::Spec(kVocab, 1000);
    spec.sink_token = sink_token;
    auto model = std::make_unique<FakeModel>(
        kVocab, [](int32_t token, int64_t) { return (token + 1) % kVocab; });
    model_ = model.get();
    engine_ = std::make_unique<const Engine::Impl>(std::move(model), spec, nullptr, SpecialTokens{},
                                                   LoadOptions{.threads = 1});
  }

  Session NewSession(const SessionOptions& options = {}) const {
    return SessionOf(*engine_, options);
  }

  // Measures, and notes the scored positions.
  PerplexityResult Measure(const Texts& texts, PerplexityOptions options,
                           const SessionOptions& session_options = {}) {
    Session session = NewSession(session_options);
    positions_.clear();
    options.on_token = [&](const ScoredToken& scored) {
      EXPECT_EQ(scored.token, texts[scored.text][scored.position]);
      positions_.push_back(scored.position);
    };
    return MeasurePerplexity(session, texts, options);
  }

  // A text that counts up from 0, as the model predicts: every token is right.
  static std::vector<int32_t> Counting(int64_t tokens) {
    std::vector<int32_t> text;
    for (int64_t i = 0; i < tokens; ++i) text.push_back(static_cast<int32_t>(i % kVocab));
    return text;
  }

  std::unique_ptr<const Engine::Impl> engine_;
  const FakeModel* model_ = nullptr;
  std::vector<int64_t> positions_;
};

TEST_F(PerplexityTest, ScoresEveryTokenButTheFirst) {
  const auto result = Measure({{3, 4, 5, 9, 10, 0}}, {});
  EXPECT_THAT(positions_, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(result.tokens, 5);
  EXPECT_NEAR(result.nll, (4 * kRight + kWrong) / 5, 1e-7);
  EXPECT_DOUBLE_EQ(result.perplexity, std::exp(result.nll));
  EXPECT_EQ(result.kv.policy, "dense");
  EXPECT_EQ(result.kv.seen, 5);  // nothing follows the last one
}

TEST_F(PerplexityTest, LeadingTokensPredictTheFirst) {
  EXPECT_NEAR(Measure({{3, 4}}, {.frame = {2}}).nll, kRight, 1e-7);
  EXPECT_THAT(positions_, ElementsAre(0, 1));
  EXPECT_NEAR(Measure({{3, 4}}, {.frame = {2, 5}}).nll, (kWrong + kRight) / 2, 1e-7);
  EXPECT_NEAR(Measure({{7}}, {.frame = {6}}).nll, kRight, 1e-7);
}

// A sink token is not scored, so that models with and without one score the same tokens.
TEST_F(PerplexityTest, SinkTokenPredictsNothing) {
  MakeEngine(/*sink_token=*/2);
  const auto result = Measure({{3, 4, 5}}, {});
  EXPECT_THAT(positions_, ElementsAre(1, 2));
  EXPECT_EQ(result.kv.seen, 3);
  EXPECT_NEAR(result.nll, kRight, 1e-7);
}

// Tokens that are read together share their time equally.
TEST_F(PerplexityTest, ABlockOfTokensSharesItsTime) {
  const auto result = Measure({Counting(60)}, {.bucket_tokens = 10}, {.chunk_tokens = 30});
  ASSERT_EQ(result.buckets.size(), 6u);
  const auto ms_per_token = [&](size_t i) {
    return result.buckets[i].ms / static_cast<double>(result.buckets[i].tokens);
  };
  double sum = 0;
  for (const Bucket& bucket : result.buckets) sum += bucket.ms;
  EXPECT_GT(ms_per_token(0), 0);
  EXPECT_LE(sum, result.elapsed_ms);
  EXPECT_NEAR(ms_per_token(1), ms_per_token(0), 1e-9);
  EXPECT_NEAR(ms_per_token(5), ms_per_token(4), 1e-9);
}

TEST_F(PerplexityTest, TextsBeginAnew) {
  const Texts texts = {{3, 4, 5}, {9}, {4, 5}};
  EXPECT_NEAR(Measure(texts, {}).nll, kRight, 1e-7);
  EXPECT_THAT(positions_, ElementsAre(1, 2, 1));
  const Texts joined = {{3, 4, 5, 9, 4, 5}};
  EXPECT_NEAR(Measure(joined, {}).nll, (3 * kRight + 2 * kWrong) / 5, 1e-7);
}

TEST_F(PerplexityTest, WindowsReadNothingOfThoseBefore) {
  const auto result =
      Measure({Counting(10)}, {.frame = {10}, .window_tokens = 4, .stride_tokens = 3});
  EXPECT_THAT(positions_, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  // The frame stands in front of 0, 3 and 6, but only 0 is scored behind it.
  EXPECT_NEAR(result.nll, kRight, 1e-7);
  EXPECT_EQ(result.kv.seen, 4);

  // In windows side by side the frame predicts each window's first token, rightly only in the first
  // window.
  EXPECT_NEAR(Measure({Counting(8)}, {.frame = {10}, .window_tokens = 4}).nll,
              (7 * kRight + kWrong) / 8, 1e-7);
  EXPECT_EQ(Measure({Counting(8)}, {.window_tokens = 4}).tokens, 6);
  EXPECT_THAT(positions_, ElementsAre(1, 2, 3, 5, 6, 7));
}

// A window's last token is not read, as it predicts nothing. Windows share a cached beginning.
TEST_F(PerplexityTest, NoTokenIsReadNeedlessly) {
  Measure({{1, 2, 3, 4, 5}}, {.frame = {7, 8}, .window_tokens = 3});
  const auto& reads = model_->reads();
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[0].position, 0);
  EXPECT_THAT(reads[0].tokens, ElementsAre(7, 8, 1, 2));
  EXPECT_EQ(reads[1].position, 1);
  EXPECT_THAT(reads[1].tokens, ElementsAre(8, 4));
}

TEST_F(PerplexityTest, TheLimitEndsTheReading) {
  EXPECT_EQ(Measure({Counting(100)}, {.max_tokens = 7}).tokens, 7);
  EXPECT_THAT(positions_, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(model_->reads().back().tokens.size(), 7u);
  EXPECT_EQ(Measure({Counting(100)}, {.max_tokens = 1000000}).tokens, 99);
}

TEST_F(PerplexityTest, BucketsAreOfPositionsInATextAndAddUp) {
  auto text = Counting(25);
  text[14] = 9;  // instead of 3: two surprises
  const auto result = Measure({text, Counting(5)}, {.frame = {10}, .bucket_tokens = 10});
  ASSERT_EQ(result.buckets.size(), 3u);
  EXPECT_EQ(result.buckets[0].tokens, 15);
  EXPECT_NEAR(result.buckets[0].nll, kRight, 1e-7);
  EXPECT_NEAR(result.buckets[1].nll, (8 * kRight + 2 * kWrong) / 10, 1e-7);
  EXPECT_EQ(result.buckets[2].begin, 20);
  EXPECT_EQ(result.buckets[2].end, 25);
  double sum = 0;
  for (const Bucket& bucket : result.buckets)
    sum += bucket.nll * static_cast<double>(bucket.tokens);
  EXPECT_NEAR(sum / 30, result.nll, 1e-12);
}

TEST_F(PerplexityTest, ReportsProgress) {
  Session session = NewSession();
  std::vector<std::pair<int64_t, int64_t>> seen;
  const Texts texts = {Counting(4)};
  MeasurePerplexity(session, texts, {.on_progress = [&](int64_t done, int64_t total) {
                      seen.emplace_back(done, total);
                    }});
  EXPECT_THAT(seen, ElementsAre(std::pair(1, 3), std::pair(2, 3), std::pair(3, 3)));
}

TEST_F(PerplexityTest, IsCancelledByItsSession) {
  Session session = NewSession();
  const Texts texts = {Counting(1000)};
  int64_t done = 0;
  PerplexityOptions options;
  options.on_token = [&](const ScoredToken&) {
    if (++done == 5) session.Cancel();
  };
  ErrorOf(ErrorKind::kCancelled, [&] { MeasurePerplexity(session, texts, options); });
}

TEST_F(PerplexityTest, ATextLongerThanTheContextIsRefusedBeforeAnyWork) {
  const Texts texts = {Counting(1002)};
  const Error error = ErrorOf([&] { Measure(texts, {}); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("1002"), HasSubstr("1000")));
  EXPECT_EQ(error.data().code, ErrorCode::kTextTooLong);
  EXPECT_EQ(error.data().found, 1001);
  EXPECT_EQ(error.data().limit, 1000);
  EXPECT_EQ(error.data().fits, 1001);
  EXPECT_TRUE(model_->reads().empty());
  Session session = NewSession();
  Reader learned(session);
  learned.learned_positions = 1000;
  EXPECT_EQ(ErrorOf([&] { MeasurePerplexity(learned, texts, {}); }).data().learned_positions, 1000);
  // Each remedy that the error names works.
  EXPECT_EQ(Measure(texts, {}, {.kv = "sinks:4+996"}).tokens, 1001);
  EXPECT_EQ(Measure(texts, {.window_tokens = 1001}).tokens, 1000);
  EXPECT_EQ(Measure(texts, {}, {.context_tokens = 1001}).tokens, 1001);
  // The last token is not read, so this just fits.
  EXPECT_EQ(Measure({Counting(1001)}, {}).tokens, 1000);
  EXPECT_EQ(Measure(texts, {.frame = {1}, .max_tokens = 1000}).tokens, 1000);
}

TEST_F(PerplexityTest, AWindowLongerThanTheContextIsRefusedBeforeAnyWork) {
  const Texts texts = {Counting(3000)};
  const PerplexityOptions options{.frame = {1}, .window_tokens = 2000};
  const Error error = ErrorOf([&] { Measure(texts, options); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("2000"), HasSubstr("1000")));
  EXPECT_EQ(error.data().code, ErrorCode::kWindowTooLong);
  EXPECT_EQ(error.data().found, 2000);
  EXPECT_EQ(error.data().fits, 1000);
  EXPECT_TRUE(model_->reads().empty());
  EXPECT_EQ(Measure(texts, {.frame = {1}, .window_tokens = 1000}).tokens, 3000);
}

TEST_F(PerplexityTest, RefusesWhatCannotBeScored) {
  for (const Texts& texts : {Texts{}, Texts{{}}, Texts{{1}, {2}}}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Measure(texts, {}); }), HasSubstr("nothing"));
  }
  EXPECT_THROW(Measure({{1, 2}}, {.bucket_tokens = -1}), Error);
  EXPECT_THROW(Measure({{1, 2}}, {.window_tokens = 2, .stride_tokens = 3}), Error);
  EXPECT_THROW(Measure({{1, kVocab, 1}}, {}), Error);
}

// The sums must equal those from a real model's logits.
TEST(PerplexityOfAModel, IsTheMeanOverItsLogits) {
  const Engine engine(GODWIT_SOURCE_DIR "/tests/data/tiny-llama", {.threads = 1});
  const std::string story = "Once upon a time there was a small bird who wanted to see the sea.";
  const auto framed = engine.Tokenize(story);
  for (const char* kv : {"dense", "sinks:2+5"}) {
    double nats = 0;
    engine.NewSession({.kv = kv}).Logits(framed, [&](int64_t i, std::span<const float> logits) {
      const auto next = static_cast<size_t>(i) + 1;
      if (next == framed.size()) return;
      double sum = 0;
      for (const float logit : logits) sum += std::exp(double{logit});
      nats += std::log(sum) - logits[framed[next]];
    });
    const Texts texts = {engine.Tokenize(story, /*add_special=*/false)};
    Session session = engine.NewSession({.kv = kv, .chunk_tokens = 7});
    const auto result = MeasurePerplexity(session, texts, {.frame = ScoredLeadingTokens(engine)});
    EXPECT_EQ(result.tokens, std::ssize(framed) - 1);
    EXPECT_NEAR(result.nll, nats / static_cast<double>(result.tokens), 1e-9) << kv;
    EXPECT_EQ(result.kv.policy, kv);
  }
}

// A window is scored as a text, whatever the session read before.
TEST(PerplexityOfAModel, WindowsAreTextsOfTheirOwn) {
  const Engine engine(GODWIT_SOURCE_DIR "/tests/data/tiny-llama", {.threads = 1});
  const auto text = engine.Tokenize("Once upon a time there was a bird, once upon a time.", false);
  ASSERT_GT(text.size(), 16u);
  const auto frame = ScoredLeadingTokens(engine);
  Texts pieces;
  for (size_t i = 0; i < text.size(); i += 8) {
    pieces.emplace_back(text.begin() + static_cast<ptrdiff_t>(i),
                        text.begin() + static_cast<ptrdiff_t>(std::min(i + 8, text.size())));
  }
  const auto nlls = [&](const Texts& texts, PerplexityOptions options) {
    std::vector<double> scores;
    options.frame = frame;
    options.on_token = [&](const ScoredToken& scored) { scores.push_back(scored.nll); };
    Session session = engine.NewSession({});
    MeasurePerplexity(session, texts, options);
    return scores;
  };
  EXPECT_EQ(nlls({text}, {.window_tokens = 8}), nlls(pieces, {}));
}

// The trained model in the shared data, if that lies beside the project. The figure comes from
// another implementation: float32, windows of 511 tokens, a BOS in front of each.
TEST(PerplexityOfAModel, RELEASE_IsThatOfTheReference) {
  const std::filesystem::path shared = GODWIT_SOURCE_DIR "/../shared/data";
  if (!std::filesystem::exists(shared)) GTEST_SKIP() << "no shared data beside the project";
  const Engine engine(shared / "models/stories260K", {});
  const auto file = shared / "corpora/tinystories/tinystories_197k.txt";
  const std::string text = ReadTextFile(file, 1 << 24).substr(0, 60000);
  const Texts texts = {engine.Tokenize(text, /*add_special=*/false)};
  Session session = engine.NewSession({.kv_type = "f32"});
  const auto result = MeasurePerplexity(
      session, texts, {.frame = ScoredLeadingTokens(engine), .window_tokens = 511});
  EXPECT_NEAR(result.nll, 1.7513, 5e-5);  // the reference figure has four digits
  EXPECT_EQ(result.tokens, std::ssize(texts[0]));
}

}  // namespace
}  // namespace godwit::eval::perplexity_test
