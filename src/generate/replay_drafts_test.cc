#include "generate/replay_drafts.h"

#include <gtest/gtest.h>

#include "generate/suffix_drafts.h"
#include "kernels/dispatch.h"
#include "tests/fake_model.h"

namespace godwit {
namespace {

Replay ReplayNgram(const std::vector<int32_t>& text, double ms_of_eight) {
  StepCosts costs;
  costs.Record(1, 10);
  costs.Record(8, ms_of_eight);
  std::vector<std::unique_ptr<DraftSource>> sources;
  sources.push_back(std::make_unique<SuffixDrafts>());
  return ReplayDrafts(text, 1, costs, std::move(sources));
}

TEST(ReplayDrafts, WhatRepeatsTakesFewerSteps) {
  std::vector<int32_t> circle, all_new;
  for (int32_t i = 0; i < 1000; ++i) {
    circle.push_back(i % 50);
    all_new.push_back(i);
  }
  const Replay repeats = ReplayNgram(circle, 11);
  EXPECT_EQ(repeats.tokens, 999);
  EXPECT_EQ(repeats.plain_ms, 9990);
  EXPECT_LT(repeats.steps, 250);
  EXPECT_LT(repeats.ms, 11 * 250);
  const Replay is_new = ReplayNgram(all_new, 11);
  EXPECT_EQ(is_new.steps, 999);
  EXPECT_EQ(is_new.guesses, 0);
  EXPECT_EQ(is_new.ms, is_new.plain_ms);
  const Replay dear = ReplayNgram(circle, 120);
  EXPECT_GT(dear.steps, 900);
  EXPECT_LT(dear.ms, 1.1 * dear.plain_ms);
}

// Guesses by what the model said are as good as the model.
TEST(ReplayDrafts, ReadsTheTextAlong) {
  class Asks : public DraftSource {
   public:
    std::string_view name() const override { return "asks"; }
    std::span<const double> Priors() const override { return priors_; }
    void Follow(std::span<const int32_t> /*text*/) override {}
    void Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
               std::vector<DraftOffer>& offers) override {
      if (node == 0 && text.size() == length_) offers.push_back({Next(tree[0].token), 0});
    }
    void Learn(int32_t token, std::span<const float> logits) override {
      EXPECT_EQ(logits[static_cast<size_t>(Next(token))], 0);
    }
    void GoOnFrom(const Sequence& sequence, const Outcome& outcome, int64_t row) override {
      length_ = sequence.tokens.size();
      EXPECT_EQ(outcome.hidden.Row(row)[0], static_cast<float>(sequence.tokens.back()));
    }
    static int32_t Next(int32_t token) { return (token + 1) % 30; }

   private:
    std::vector<double> priors_{0.5};
    size_t length_ = 0;
  };
  const FakeModel model(30, [](int32_t token, int64_t) { return Asks::Next(token); });
  std::vector<int32_t> text;
  for (int32_t i = 0; i < 1000; ++i) text.push_back(i % 30);
  ThreadPool pool(1);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  ReadAlong along(model, exec,
                  MakeTextCache(FakeModel::Geometry(), {.kv_type = DType::kF32, .context = 1000}),
                  text);
  StepCosts costs;
  costs.Record(1, 10);
  costs.Record(8, 11);
  auto asks = std::make_unique<Asks>();
  std::vector<std::unique_ptr<DraftSource>> sources;
  sources.push_back(std::move(asks));
  const Replay replay = ReplayDrafts(text, 100, costs, std::move(sources), &along);
  EXPECT_EQ(replay.tokens, 900);
  EXPECT_LE(replay.steps, 451) << "every guess but the first was right";
  EXPECT_EQ(replay.accepted[0].guesses, replay.guesses);
}

}  // namespace
}  // namespace godwit
