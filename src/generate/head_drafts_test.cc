#include "generate/head_drafts.h"

#include <gtest/gtest.h>

#include <memory>

#include "generate/speculative.h"
#include "generate/step_together.h"
#include "kernels/dispatch.h"
#include "tests/fake_model.h"

namespace godwit::head_drafts_test {
namespace {

constexpr int32_t kVocab = 64;

// The clock of the drafts: the time of a row that heads ask for.
constexpr double kRowMs = 0.125;
double now = 0;

class CountsProducts : public FakeModel {
 public:
  CountsProducts() : FakeModel(kVocab, [](int32_t token, int64_t) { return (token + 7) % 9; }) {}
  void NormedLogits(const Exec&, MatrixView<const float> normed,
                    MatrixView<float> logits) const override {
    now += kRowMs * static_cast<double>(normed.rows);
    rows.push_back(normed.rows);
    for (int64_t row = 0; row < normed.rows; ++row) {
      for (int64_t t = 0; t < logits.cols; ++t) {
        logits.Row(row)[t] = normed.Row(row)[0] * static_cast<float>(t % 5);
      }
    }
  }
  mutable std::vector<int64_t> rows;
};

class HeadDraftsTest : public testing::Test {
 protected:
  static std::shared_ptr<HeadBatch> NewBatch(ThreadPool& pool) {
    HeadParameters parameters(2, 1, kVocab);
    for (int64_t i = 0; i < 2; ++i) {
      parameters.InputNorm(i)[0] = parameters.OutputNorm(i)[0] = 1;
    }
    parameters.Matrix(1)[0] = -5;  // inverted
    auto heads = std::make_shared<DraftHeads>(pool, std::move(parameters), DType::kF32);
    return std::make_shared<HeadBatch>(std::move(heads), [] { return now; });
  }
  static Sequence NewSequence(int32_t first) {
    return {.tokens = {first},
            .cache = MakeTextCache(FakeModel::Geometry(), {.kv_type = DType::kF32, .context = 200}),
            .sampler = Sampler({.temperature = 0}, kVocab)};
  }

  CountsProducts model_;
  ThreadPool pool_{1};
  Workspace workspace_;
  const Exec exec_{
      .pool = pool_, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
  std::shared_ptr<HeadBatch> batch_ = NewBatch(pool_);
};

TEST_F(HeadDraftsTest, TextsOfAStepShareOneProduct) {
  std::vector<Sequence> sequences;
  std::vector<std::unique_ptr<Speculative>> strategies;
  for (int32_t i = 0; i < 3; ++i) {
    sequences.push_back(NewSequence(i));
    std::vector<std::unique_ptr<DraftSource>> sources;
    sources.push_back(std::make_unique<HeadDrafts>(batch_));
    strategies.push_back(std::make_unique<Speculative>(std::move(sources), [] { return now; }));
  }
  for (int step = 0; step < 8; ++step) {
    std::vector<Participant> participants;
    for (size_t i = 0; i < 3; ++i) {
      participants.push_back(
          {.sequence = &sequences[i], .strategy = strategies[i].get(), .max_tokens = 8});
    }
    StepTogether(model_, exec_, participants, [] { return now += 1; });
    for (const Participant& one : participants) EXPECT_FALSE(one.error);
  }
  EXPECT_EQ(model_.rows, std::vector<int64_t>(8, 3 * 2));
  EXPECT_GT(strategies[0]->stats().draft_tokens, 0) << "or nothing came of it";
}

// Each text has the draft tokens that it has alone, and takes a third of the time.
TEST_F(HeadDraftsTest, ABatchIsAsManyTextsAlone) {
  const std::vector<float> states = {1, -2, 3};
  std::vector<std::shared_ptr<HeadBatch::TextOffers>> together, alone;
  const auto add = [&](auto& draft_tokens, float state) {
    draft_tokens.push_back(std::make_shared<HeadBatch::TextOffers>());
    draft_tokens.back()->offers.resize(2);
    batch_->Add(draft_tokens.back(), {&state, 1});
  };
  for (const float state : states) {
    add(alone, state);
    EXPECT_EQ(batch_->Compute(model_, exec_), 2 * kRowMs);
  }
  for (const float state : states) add(together, state);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(batch_->Compute(model_, exec_), 2 * kRowMs);
  EXPECT_EQ(model_.rows, (std::vector<int64_t>{2, 2, 2, 6}));
  const auto tokens = [](const HeadBatch::TextOffers& draft_tokens) {
    std::vector<std::pair<int32_t, int32_t>> offers;
    for (const auto& head : draft_tokens.offers) {
      for (const DraftOffer& offer : head) offers.emplace_back(offer.token, offer.kind);
    }
    return offers;
  };
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(tokens(*together[i]), tokens(*alone[i])) << i;
  EXPECT_NE(tokens(*alone[0]), tokens(*alone[1]));
}

}  // namespace
}  // namespace godwit::head_drafts_test
