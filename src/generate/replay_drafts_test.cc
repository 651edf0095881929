#include "generate/replay_drafts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "generate/partial_drafts.h"
#include "generate/suffix_drafts.h"
#include "kernels/dispatch.h"
#include "tests/fake_model.h"

namespace godwit::replay_drafts_test {
namespace {

Replay ReplayNgram(const std::vector<int32_t>& text, double ms_of_eight) {
  const StepCosts costs = StepCosts::AlongLines({{1, 10}, {8, ms_of_eight}});
  std::vector<std::unique_ptr<DraftSource>> sources;
  sources.push_back(std::make_unique<SuffixDrafts>());
  return ReplayDrafts(text, 1, costs, std::move(sources));
}

TEST(ReplayDrafts, RepeatedTextTakesFewerSteps) {
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
  EXPECT_EQ(is_new.draft_tokens, 0);
  EXPECT_EQ(is_new.ms, is_new.plain_ms);
  const Replay dear = ReplayNgram(circle, 120);
  EXPECT_GT(dear.steps, 900);
  EXPECT_LT(dear.ms, 1.1 * dear.plain_ms);
}

class ReplayWithModel : public testing::Test {
 protected:
  static std::vector<std::unique_ptr<DraftSource>> Only(std::unique_ptr<DraftSource> source) {
    std::vector<std::unique_ptr<DraftSource>> sources;
    sources.push_back(std::move(source));
    return sources;
  }
  static std::unique_ptr<AttentionPolicy> Part() {
    return MakePolicy(FakeModel::Geometry(),
                      {.spec = "blocks:initial=0,local_windows_len=64,second_block_count=1",
                       .kv_type = DType::kF32,
                       .context = 1000});
  }
  Replay Run(const ReplayTimes& times, std::unique_ptr<DraftSource> source) {
    const auto prompt =
        MakeTextCache(FakeModel::Geometry(), {.kv_type = DType::kF32, .context = 1000});
    ReadPrompt(std::span(text_).first(100), model_, exec_, *prompt);
    return ReplayDrafts(text_, *prompt, times, Only(std::move(source)), {}, model_, exec_);
  }

  static int32_t Next(int32_t token) { return (token + 1) % 30; }
  const FakeModel model_{30, [](int32_t token, int64_t) { return Next(token); }};
  std::vector<int32_t> text_ = [] {
    std::vector<int32_t> text;
    for (int32_t i = 0; i < 1000; ++i) text.push_back(i % 30);
    return text;
  }();
  ThreadPool pool_{1};
  Workspace workspace_;
  const Exec exec_{
      .pool = pool_, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
};

ReplayTimes Times(double ms_of_many) {
  ReplayTimes times;
  times.step = StepCosts::AlongLines({{1, 10}, {16, ms_of_many}});
  return times;
}

// Draft tokens from the model's outputs are as good as the model.
TEST_F(ReplayWithModel, SourcesLearnFromItsSteps) {
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
      EXPECT_EQ(logits[Next(token)], 0);
    }
    void ContinueFrom(const Sequence& sequence, const Outcome& outcome, int64_t row) override {
      length_ = sequence.tokens.size();
      EXPECT_EQ(outcome.hidden.Row(row)[0], static_cast<float>(sequence.tokens.back()));
    }
    static int32_t Next(int32_t token) { return (token + 1) % 30; }

   private:
    std::vector<double> priors_{0.5};
    size_t length_ = 0;
  };
  const Replay replay = Run(Times(10), std::make_unique<Asks>());
  EXPECT_EQ(replay.tokens, 900);
  EXPECT_LE(replay.steps, 455) << "every guess was right, but for those before a step was measured";
  EXPECT_EQ(replay.accepted[0].draft_tokens, replay.draft_tokens);
  EXPECT_DOUBLE_EQ(replay.ms, 10 * static_cast<double>(replay.steps));
  EXPECT_DOUBLE_EQ(replay.plain_ms, 9000);
}

// The text decides the choice, whatever the model predicts.
TEST_F(ReplayWithModel, ContinuesLikeTheText) {
  std::ranges::reverse(text_);
  const Replay replay = Run(Times(10), std::make_unique<SuffixDrafts>());
  EXPECT_EQ(replay.tokens, 900);
  EXPECT_LT(replay.steps, 200);
}

TEST_F(ReplayWithModel, CountsTheTimeOfAPartialCache) {
  ReplayTimes times = Times(10);
  times.partial_ms = 1;
  const auto partial = [] { return std::make_unique<PartialDrafts>(Part(), 100, ReplayedMs); };
  const Replay cheap = Run(times, partial());
  EXPECT_EQ(cheap.tokens, 900);
  EXPECT_LT(cheap.steps, 200);
  const double guessed_ms = cheap.ms - 10 * static_cast<double>(cheap.steps);
  EXPECT_NEAR(guessed_ms, static_cast<double>(cheap.accepted[0].draft_tokens), 20);
  times.partial_ms = 11;
  const Replay dear = Run(times, partial());
  EXPECT_GT(dear.steps, 850);
  EXPECT_LT(dear.ms, 1.03 * dear.plain_ms);
  EXPECT_GT(dear.ms, dear.plain_ms) << "it tried";
}

}  // namespace
}  // namespace godwit::replay_drafts_test
