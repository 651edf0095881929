#include "generate/triforce_drafts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "generate/autoregressive.h"
#include "generate/partial_drafts.h"
#include "generate/speculative.h"
#include "kernels/dispatch.h"
#include "tests/drive_strategy.h"
#include "tests/fake_model.h"

namespace godwit::triforce_drafts_test {
namespace {

constexpr int32_t kVocab = 40;
constexpr int64_t kLeast = 100;
const SamplerOptions kGreedy{.temperature = 0};
const SamplerOptions kSampled{
    .repeat_last_n = 64, .repeat_penalty = 1.4f, .temperature = 1, .min_p = 0.01f, .seed = 3};

// The clock of the drafts: a reading by the part takes part_ms, and a step takes 1.
double now, part_ms;
double Now() { return now; }
double AStep(int64_t /*rows*/) { return 1; }

int32_t NextOf(int32_t token, int64_t position) {
  return static_cast<int32_t>((7 * token + position * position) % kVocab);
}

// The small model is wrong wherever errs_ says so. The part is wrong where the text may not take
// the likeliest token: every part_errs_ tokens; 0: never.
class TriForceDraftsTest : public testing::Test {
 protected:
  TriForceDraftsTest() {
    now = part_ms = 0;
    model_.on_step = [this] {
      if (model_.segments().front().text == sequence_.cache.get()) return;
      now += part_ms;
      ++readings_of_part_;
      if (on_part_) on_part_();
    };
  }

  std::unique_ptr<AttentionPolicy> Part() const {
    return MakePolicy(FakeModel::Geometry(),
                      {.spec = "blocks:initial=0,local_windows_len=64,second_block_count=1",
                       .kv_type = DType::kF32,
                       .context = kContext});
  }
  static Speculative NewStrategy(std::unique_ptr<DraftSource> source) {
    std::vector<std::unique_ptr<DraftSource>> sources;
    sources.push_back(std::move(source));
    return Speculative(std::move(sources), Now);
  }
  Speculative TriForce(TriForceDrafts::Lengths lengths) {
    return NewStrategy(std::make_unique<TriForceDrafts>(
        Part(), kLeast,
        ModelText::Parts{.model = small_,
                         .new_text =
                             [this] {
                               return MakeTextCache(FakeModel::Geometry(),
                                                    {.spec = "sinks:4+124",
                                                     .kv_type = DType::kF32,
                                                     .context = kContext},
                                                    pool_of_small_);
                             },
                         .kept = kept_,
                         .key = "",
                         .chunk_tokens = 30},
        lengths, Now));
  }
  Speculative Partial() const {
    return NewStrategy(std::make_unique<PartialDrafts>(Part(), kLeast, Now));
  }

  void Begin(const SamplerOptions& sampler = kGreedy, std::shared_ptr<KvPool> pool = nullptr) {
    sequence_.tokens = {3, 1, 4, 1, 5, 9, 2, 6, 5};
    sequence_.cache = MakeTextCache(FakeModel::Geometry(),
                                    {.kv_type = DType::kF32, .context = kContext}, std::move(pool));
    sequence_.sampler = Sampler(sampler, kVocab);
    sequence_.restrict_to = nullptr;
    if (part_errs_ == 0) return;
    sequence_.restrict_to = [this](std::span<const int32_t> tokens, std::span<float> logits) {
      if (std::ssize(tokens) % part_errs_ != 0) return;
      logits[NextOf(tokens.back(), std::ssize(tokens) - 1)] = -INFINITY;
    };
  }
  Drive On() {
    return {.model = model_,
            .exec = {.pool = pool_, .kernels = kernels_, .workspace = workspace_},
            .ms = AStep};
  }
  std::vector<int32_t> Continue(Speculative& strategy, int64_t tokens,
                                const SamplerOptions& sampler = kGreedy) {
    Begin(sampler);
    readings_of_part_ = 0;
    On().Continue(sequence_, strategy, tokens);
    return sequence_.tokens;
  }

  static constexpr int64_t kContext = 4000;
  std::function<bool(int64_t position)> errs_ = [](int64_t) { return false; };
  int64_t part_errs_ = 0;
  FakeModel model_{kVocab, NextOf};
  std::shared_ptr<FakeModel> small_ =
      std::make_shared<FakeModel>(kVocab, [this](int32_t token, int64_t position) {
        return (NextOf(token, position) + (errs_(position) ? 1 : 0)) % kVocab;
      });
  std::shared_ptr<KvPool> pool_of_small_;
  std::shared_ptr<DraftTexts> kept_ = std::make_shared<DraftTexts>();
  Sequence sequence_{.tokens = {}, .cache = nullptr, .sampler = Sampler({}, kVocab), .id = 7};
  int64_t readings_of_part_ = 0;
  std::function<void()> on_part_;
  ThreadPool pool_{1};
  const kernels::KernelTable& kernels_ = *kernels::SelectIsa("").table;
  Workspace workspace_;
};

TEST_F(TriForceDraftsTest, ChainsAreThoseOfThePartAndTheTextStays) {
  constexpr int64_t kTokens = 700;
  model_.other_logits = small_->other_logits = -2;
  for (const SamplerOptions& sampler : {kGreedy, kSampled}) {
    for (const int64_t part_errs : {0, 5, 11}) {
      part_errs_ = part_errs;
      Begin(sampler);
      Autoregressive plain;
      On().Continue(sequence_, plain, kTokens + 10);
      const auto text = sequence_.tokens;
      Speculative partial = Partial();
      Continue(partial, kTokens, sampler);
      const int64_t readings = readings_of_part_;
      for (const int every : {1, 2, 5, 0}) {
        for (const int64_t inner : {1, 3, 7}) {
          errs_ = [every](int64_t position) { return every > 0 && position % every == 0; };
          Speculative triforce = TriForce({.inner = inner, .outer = ChainDrafts::kMaxDraftTokens});
          const auto found = Continue(triforce, kTokens, sampler);
          EXPECT_TRUE(std::ranges::equal(found, std::span(text).first(found.size())));
          const auto& a = triforce.stats();
          const auto& b = partial.stats();
          EXPECT_EQ(a.steps, b.steps) << every << inner;
          EXPECT_EQ(a.draft_tokens, b.draft_tokens) << every << inner;
          EXPECT_EQ(a.accepted[0].draft_tokens, b.accepted[0].draft_tokens) << every << inner;
          if (every != 1) {
            EXPECT_LT(readings_of_part_, readings) << every << inner;
          }
        }
      }
    }
  }
}

// A chain of eight takes three readings by threes, or one.
TEST_F(TriForceDraftsTest, PartReadsTokensOfTheSmallModelTogether) {
  const auto draft_tokens_a_reading = [this](int64_t inner) {
    Speculative strategy = TriForce({.inner = inner, .outer = ChainDrafts::kMaxDraftTokens});
    Continue(strategy, 900);
    return static_cast<double>(strategy.stats().accepted[0].draft_tokens) /
           static_cast<double>(readings_of_part_);
  };
  EXPECT_NEAR(draft_tokens_a_reading(2), 8.0 / 3, 0.2);
  EXPECT_NEAR(draft_tokens_a_reading(7), 8, 0.8);
  errs_ = [](int64_t) { return true; };
  EXPECT_NEAR(draft_tokens_a_reading(2), 1, 0.05) << "the part's own token alone";
}

TEST_F(TriForceDraftsTest, OuterEndsTheChain) {
  for (const int64_t outer : {1, 3, 6}) {
    Speculative strategy = TriForce({.inner = 2, .outer = outer});
    Continue(strategy, 300);  // it learns their cost
    const DraftStats before = strategy.stats();
    On().Continue(sequence_, strategy, 600);
    const auto accepted = strategy.stats().accepted[0].draft_tokens;
    const auto steps = static_cast<double>(strategy.stats().steps - before.steps);
    EXPECT_NEAR(static_cast<double>(accepted - before.accepted[0].draft_tokens) / steps,
                static_cast<double>(outer), 0.2);
  }
}

// Draft tokens that were made together share their time: three in 0.9 pay as three of 0.3 do.
TEST_F(TriForceDraftsTest, ChainsGrowWhileTheyPay) {
  const auto tokens_a_step = [&](double ms, const std::function<double(int64_t)>& step_ms) {
    part_ms = ms;
    Begin();
    Speculative strategy = TriForce({.inner = 2, .outer = ChainDrafts::kMaxDraftTokens});
    Drive drive = On();
    drive.ms = step_ms;
    drive.Continue(sequence_, strategy, 500);  // it learns their cost
    drive.steps = readings_of_part_ = 0;
    drive.Continue(sequence_, strategy, 500);
    return 500.0 / static_cast<double>(drive.steps);
  };
  EXPECT_GT(tokens_a_step(0.3, AStep), 8);
  EXPECT_GT(tokens_a_step(0.9, AStep), 3);
  EXPECT_LT(tokens_a_step(3.3, AStep), 1.2);
  EXPECT_LT(readings_of_part_, 20) << "it tries again now and then";
  EXPECT_GT(readings_of_part_, 2);
}

// A level that has no memory, is cancelled or is damaged does not end the text.
TEST_F(TriForceDraftsTest, FailedDraftsEndNoText) {
  for (const bool small_fails : {false, true}) {
    for (const ErrorKind kind : {ErrorKind::kCancelled, ErrorKind::kMemory, ErrorKind::kFormat}) {
      errs_ = [](int64_t position) { return position % 3 == 0; };
      part_errs_ = 7;
      Begin();
      Autoregressive plain;
      On().Continue(sequence_, plain, 1010);
      const auto text = sequence_.tokens;
      int64_t calls = 0;
      const auto fail = [&] {
        if (++calls % 50 == 0) Throw(kind, "of a draft");
      };
      on_part_ = small_fails ? std::function<void()>() : fail;
      small_->on_step = small_fails ? fail : std::function<void()>();
      Speculative strategy = TriForce({.inner = 2, .outer = ChainDrafts::kMaxDraftTokens});
      const auto found = Continue(strategy, 1000);
      EXPECT_TRUE(std::ranges::equal(found, std::span(text).first(found.size())));
      EXPECT_EQ(calls == 50, kind != ErrorKind::kCancelled) << "then it takes no more";
      EXPECT_GT(strategy.stats().accepted[0].draft_tokens, 10);
    }
  }
}

TEST_F(TriForceDraftsTest, ReleasesItsMemory) {
  const KvLayout layout = LayoutOf(FakeModel::Geometry(), DType::kF32);
  const auto kv_pool = std::make_shared<KvPool>(layout);
  pool_of_small_ = std::make_shared<KvPool>(layout);
  Begin(kGreedy, kv_pool);
  Speculative strategy = TriForce({.inner = 2, .outer = ChainDrafts::kMaxDraftTokens});
  On().Continue(sequence_, strategy, 600);
  const int64_t text = PagesFor(sequence_.cache->length());
  EXPECT_GT(kv_pool->pages_in_use(), text);
  EXPECT_LE(pool_of_small_->pages_in_use(), 2 * PagesFor(128 + TextCache::kMaxRollbackTokens + 64))
      << "its cache, and a kept one";
  EXPECT_TRUE(strategy.ReleaseMemory());
  EXPECT_EQ(kv_pool->pages_in_use(), text);
  EXPECT_FALSE(strategy.ReleaseMemory());
  while (kept_->Drop()) continue;
  EXPECT_EQ(pool_of_small_->pages_in_use(), 0);
  readings_of_part_ = 0;
  On().Continue(sequence_, strategy, 100);
  EXPECT_EQ(readings_of_part_, 0);
}

}  // namespace
}  // namespace godwit::triforce_drafts_test
