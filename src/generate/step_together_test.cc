#include "generate/step_together.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "base/test_support.h"
#include "generate/autoregressive.h"
#include "kernels/dispatch.h"
#include "tests/fake_model.h"

namespace godwit::step_together_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kVocab = 100;

int32_t Script(int32_t token, int64_t position) {
  return static_cast<int32_t>((31 * token + 7 * position + 3) % kVocab);
}

// The script's tokens from `first` on.
std::vector<int32_t> Text(int32_t first, int64_t tokens) {
  std::vector<int32_t> text = {first};
  while (std::ssize(text) < tokens) text.push_back(Script(text.back(), std::ssize(text) - 1));
  return text;
}

// A model whose logits are NaN where the script says `bad_next`.
class NanModel : public FakeModel {
 public:
  NanModel() : FakeModel(kVocab, Script) {}
  void Logits(const Exec& exec, MatrixView<const float> hidden,
              MatrixView<float> logits) const override {
    FakeModel::Logits(exec, hidden, logits);
    for (int64_t row = 0; row < hidden.rows; ++row) {
      if (hidden.Row(row)[0] == static_cast<float>(bad_next)) {
        for (float& x : logits.RowSpan(row)) x = std::numeric_limits<float>::quiet_NaN();
      }
    }
  }
  int32_t bad_next = -1;
};

// Drafts the text's continuation, all but the last few tokens right, and accepts the right ones.
class Drafter : public Strategy {
 public:
  explicit Drafter(int64_t wrong) : wrong_(wrong) {}

  Proposal Propose(const Sequence& sequence, int64_t max_tokens) override {
    const int64_t seen = sequence.cache->length();
    rows_.assign(1, sequence.tokens.back());
    parents_.assign(1, -1);
    for (int64_t i = 1; i < max_tokens; ++i) {
      const int32_t next = Script(rows_.back(), seen + i - 1);
      rows_.push_back(i < max_tokens - wrong_ ? next : (next + 1) % kVocab);
      parents_.push_back(static_cast<int32_t>(i) - 1);
    }
    return {.segment = {.tokens = rows_,
                        .text = sequence.cache.get(),
                        .phase = Phase::kDecode,
                        .parents = parents_},
            .logit_rows = std::ssize(rows_)};
  }

  std::span<const int32_t> Accept(Sequence& sequence, const Outcome& outcome) override {
    const MatrixView<float> logits = outcome.logits;
    EXPECT_EQ(outcome.hidden.rows, logits.rows);
    int64_t row = 0;
    while (true) {
      const auto best = std::ranges::max_element(logits.RowSpan(row));
      sequence.tokens.push_back(static_cast<int32_t>(best - logits.RowSpan(row).begin()));
      if (row + 1 == logits.rows || rows_[static_cast<size_t>(row) + 1] != sequence.tokens.back()) {
        break;
      }
      ++row;
    }
    sequence.cache->Accept(row);
    return std::span<const int32_t>(sequence.tokens).last(static_cast<size_t>(row) + 1);
  }

 private:
  int64_t wrong_;
  std::vector<int32_t> rows_, parents_;
};

class StepTogetherTest : public testing::Test {
 protected:
  Sequence NewSequence(int32_t first, int64_t prompt, std::shared_ptr<KvPool> pool = nullptr) {
    return {.tokens = Text(first, prompt),
            .cache = MakeTextCache(FakeModel::Geometry(), {.kv_type = DType::kF32, .context = 500},
                                   std::move(pool)),
            .sampler = Sampler({.temperature = 0}, kVocab)};
  }

  Participant Part(Sequence& sequence, int64_t max_tokens = 10) {
    return {.sequence = &sequence, .strategy = &autoregressive_, .max_tokens = max_tokens};
  }

  void Step(std::vector<Participant>& participants, const CancelToken* cancel = nullptr) {
    StepTogether(model_,
                 {.pool = pool_,
                  .kernels = *kernels::SelectIsa("").table,
                  .workspace = workspace_,
                  .cancel = cancel},
                 participants);
  }

  static ErrorKind KindOf(const Participant& one) {
    return ErrorOf([&] { std::rethrow_exception(one.error); }).kind();
  }

  NanModel model_;
  Autoregressive autoregressive_;
  ThreadPool pool_{2};
  Workspace workspace_;
};

TEST_F(StepTogetherTest, EveryTextGetsItsOwnTokens) {
  Sequence prompt = NewSequence(1, 25), decode = NewSequence(2, 1), end = NewSequence(3, 7);
  std::vector<Participant> parts = {Part(prompt), Part(decode), Part(end)};
  Step(parts);
  EXPECT_TRUE(parts[0].accepted.empty());
  EXPECT_THAT(parts[1].accepted, ElementsAre(Text(2, 2)[1]));
  EXPECT_THAT(parts[2].accepted, ElementsAre(Text(3, 8)[7]));
  for (int step = 0; step < 5; ++step) Step(parts);
  EXPECT_EQ(prompt.tokens, Text(1, 29));
  EXPECT_EQ(decode.tokens, Text(2, 7));
  EXPECT_EQ(end.tokens, Text(3, 13));
  for (const Participant& one : parts) {
    EXPECT_EQ(one.error, nullptr);
    EXPECT_EQ(one.sequence->pending(), 1);
  }
  EXPECT_EQ(model_.reads().size(), 18u);
}

TEST_F(StepTogetherTest, TextsWithoutLogitsShowNone) {
  Sequence prompt = NewSequence(1, 15), decode = NewSequence(2, 3);
  int choices = 0;
  const std::function<void(std::span<const float>)> see = [&](std::span<const float> logits) {
    ASSERT_EQ(std::ssize(logits), kVocab);
    ++choices;
    EXPECT_EQ(logits[Text(1, 16)[15]], 0) << "before anything has changed any";
  };
  std::vector<Participant> parts = {Part(prompt), Part(decode)};
  parts[0].on_choice = &see;
  Step(parts);
  EXPECT_EQ(choices, 0);
  Step(parts);
  EXPECT_EQ(choices, 1);
}

// The text with the error ends. The others keep their results and continue.
TEST_F(StepTogetherTest, AnErrorOfOneTextIsItsOwn) {
  for (const bool by_caller : {false, true}) {
    Sequence first = NewSequence(1, 5), second = NewSequence(2, 5), third = NewSequence(3, 5);
    std::vector<Participant> parts = {Part(first), Part(second), Part(third)};
    const std::function<void(std::span<const float>)> fail = [](std::span<const float>) {
      Throw(ErrorKind::kIo, "no reader");
    };
    if (by_caller) {
      parts[1].on_choice = &fail;
    } else {
      model_.bad_next = Text(2, 6)[5];
    }
    ASSERT_NE(Text(1, 6)[5], Text(2, 6)[5]);
    ASSERT_NE(Text(3, 6)[5], Text(2, 6)[5]);
    Step(parts);
    EXPECT_EQ(parts[0].error, nullptr);
    ASSERT_NE(parts[1].error, nullptr);
    EXPECT_EQ(parts[2].error, nullptr);
    if (by_caller) {
      EXPECT_EQ(KindOf(parts[1]), ErrorKind::kIo);
    }
    EXPECT_TRUE(parts[1].accepted.empty());
    EXPECT_EQ(second.tokens, Text(2, 5));
    EXPECT_EQ(second.pending(), 0) << "it has been read, and there is nothing to go on with";
    model_.bad_next = -1;
    parts.erase(parts.begin() + 1);
    Step(parts);
    EXPECT_EQ(first.tokens, Text(1, 7));
    EXPECT_EQ(third.tokens, Text(3, 7));
  }
}

TEST_F(StepTogetherTest, AnErrorOfTheStepLeavesAllTextsAsTheyWere) {
  const auto pool = std::make_shared<KvPool>(
      LayoutOf(FakeModel::Geometry(), DType::kF32),
      std::make_shared<KvBudget>(LayoutOf(FakeModel::Geometry(), DType::kF32).BytesFor(128)));
  Sequence first = NewSequence(1, 60, pool), second = NewSequence(2, 100, pool);
  std::vector<Participant> parts = {Part(first, 60), Part(second, 60)};
  Step(parts);
  parts = {Part(first), Part(second, 40)};
  const std::string message = ErrorOf(ErrorKind::kMemory, [&] { Step(parts); });
  EXPECT_THAT(message, HasSubstr(" are taken"));
  CancelToken cancel;
  cancel.Cancel();
  EXPECT_EQ(ErrorOf([&] { Step(parts, &cancel); }).kind(), ErrorKind::kMemory);
  parts = {Part(first), Part(second, 4)};
  EXPECT_EQ(ErrorOf([&] { Step(parts, &cancel); }).kind(), ErrorKind::kCancelled);
  for (const auto& [sequence, tokens, length] :
       {std::tuple{&first, Text(1, 61), 60}, {&second, Text(2, 100), 60}}) {
    EXPECT_EQ(sequence->tokens, tokens);
    EXPECT_EQ(sequence->cache->length(), length);
  }
  Step(parts);
  EXPECT_EQ(first.tokens, Text(1, 62));
  EXPECT_EQ(second.pending(), 36);
}

// The drafts stand beside a text that is decoded one by one. Some are wrong, and the accepted
// tokens are the text.
TEST_F(StepTogetherTest, AStrategyMayBringSeveralDrafts) {
  for (const int64_t wrong : {0, 1, 3, 7}) {
    Sequence drafted = NewSequence(4, 1), plain = NewSequence(5, 20);
    Drafter drafter(wrong);
    std::vector<Participant> parts = {Part(drafted, 8), Part(plain)};
    parts[0].strategy = &drafter;
    for (int step = 0; step < 5; ++step) {
      Step(parts);
      EXPECT_EQ(std::ssize(parts[0].accepted), 8 - wrong);
    }
    EXPECT_EQ(drafted.tokens, Text(4, 1 + 5 * (8 - wrong)));
    EXPECT_EQ(drafted.pending(), 1);
    EXPECT_EQ(plain.tokens, Text(5, 24));
  }
}

}  // namespace
}  // namespace godwit::step_together_test
