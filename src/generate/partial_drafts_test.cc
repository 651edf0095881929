#include "generate/partial_drafts.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "generate/autoregressive.h"
#include "generate/speculative.h"
#include "kernels/dispatch.h"
#include "tests/drive_strategy.h"
#include "tests/fake_model.h"

namespace godwit::partial_drafts_test {
namespace {

constexpr int32_t kVocab = 40;
constexpr int64_t kLeast = 100;

// The clock of the drafts: a row takes row_ms, and a step takes 1.
double now, row_ms;
double Now() { return now; }

// The next token depends only on tokens that a part of the cache shows.
class PartialDraftsTest : public testing::Test {
 protected:
  PartialDraftsTest() {
    now = row_ms = 0;
    model_.on_step = [this] {
      if (model_.segments().front().text == sequence_.cache.get()) return;
      now += row_ms;
      ++rows_of_drafts_;
      if (on_draft_) on_draft_();
    };
  }

  std::unique_ptr<AttentionPolicy> Policy(const std::string& spec) const {
    return MakePolicy(FakeModel::Geometry(),
                      {.spec = spec, .kv_type = DType::kF32, .context = context_});
  }
  Speculative NewStrategy() const {
    std::vector<std::unique_ptr<DraftSource>> sources;
    sources.push_back(std::make_unique<PartialDrafts>(
        Policy("blocks:initial=0,local_windows_len=64,second_block_count=1"), kLeast, Now));
    return Speculative(std::move(sources), Now);
  }
  void Begin(const SamplerOptions& sampler = {.temperature = 0},
             std::shared_ptr<KvPool> pool = nullptr) {
    sequence_.tokens = {3, 1, 4, 1, 5, 9, 2, 6, 5};
    sequence_.cache = MakeTextCache(FakeModel::Geometry(),
                                    {.kv_type = DType::kF32, .context = context_}, std::move(pool));
    sequence_.sampler = Sampler(sampler, kVocab);
  }
  Drive On() {
    return {.model = model_, .exec = {.pool = pool_, .kernels = kernels_, .workspace = workspace_}};
  }
  double TokensAStep(Speculative& strategy, std::function<double(int64_t)> ms) {
    Drive drive = On();
    drive.ms = std::move(ms);
    drive.Continue(sequence_, strategy, 500);  // it learns their cost
    drive.steps = rows_of_drafts_ = 0;
    drive.Continue(sequence_, strategy, 500);
    return 500.0 / static_cast<double>(drive.steps);
  }

  FakeModel model_{kVocab, [](int32_t token, int64_t position) {
                     return static_cast<int32_t>((7 * token + position * position) % kVocab);
                   }};
  int64_t context_ = 4000;
  Sequence sequence_{.tokens = {}, .cache = nullptr, .sampler = Sampler({}, kVocab), .id = 7};
  int64_t rows_of_drafts_ = 0;
  std::function<void()> on_draft_;
  ThreadPool pool_{1};
  const kernels::KernelTable& kernels_ = *kernels::SelectIsa("").table;
  Workspace workspace_;
};

double AStep(int64_t /*rows*/) { return 1; }

TEST_F(PartialDraftsTest, DraftsFollowTheSamplersPenalties) {
  model_.other_logits = -2;
  const SamplerOptions sampler{
      .repeat_last_n = 64, .repeat_penalty = 1.4f, .temperature = 1, .min_p = 0.01f, .seed = 3};
  Begin(sampler);
  Autoregressive plain;
  On().Continue(sequence_, plain, 1100);
  const auto text = sequence_.tokens;
  Begin(sampler);
  Speculative strategy = NewStrategy();
  EXPECT_GT(TokensAStep(strategy, AStep), 8) << "of 9 at the most: none was wrong";
  EXPECT_TRUE(std::ranges::equal(sequence_.tokens, std::span(text).first(sequence_.tokens.size())));
}

TEST_F(PartialDraftsTest, ChainsGrowWhileTheyPay) {
  const auto tokens_a_step = [&](double draft_ms, std::function<double(int64_t)> ms) {
    Begin();
    row_ms = draft_ms;
    Speculative strategy = NewStrategy();
    return TokensAStep(strategy, std::move(ms));
  };
  EXPECT_GT(tokens_a_step(0.1, AStep), 8);
  const auto three_are_free = [](int64_t rows) {
    return rows <= 3 ? 1.0 : 0.8 * static_cast<double>(rows - 2);
  };
  const double few = tokens_a_step(0.3, three_are_free);
  EXPECT_GT(few, 2.5);
  EXPECT_LT(few, 3.5);
  EXPECT_LT(tokens_a_step(1.1, AStep), 1.1);
  EXPECT_LT(rows_of_drafts_, 20) << "it tries again now and then";
  EXPECT_GT(rows_of_drafts_, 2);
}

TEST_F(PartialDraftsTest, IndexIsMadeOnceAndItsTimeDoesNotCount) {
  Begin();
  Speculative strategy = NewStrategy();
  Drive drive = On();
  drive.ms = AStep;
  row_ms = 50;
  on_draft_ = [] { row_ms = 0.1; };
  drive.Continue(sequence_, strategy, 200);
  EXPECT_EQ(strategy.stats().accepted.front().skipped_steps, 0);
  EXPECT_LT(drive.steps, kLeast + 40);
}

TEST_F(PartialDraftsTest, ShortOrFullTextHasFewerDrafts) {
  context_ = 300;
  Begin();
  Speculative strategy = NewStrategy();
  Drive drive = On();
  drive.Continue(sequence_, strategy, kLeast - 9);
  EXPECT_EQ(rows_of_drafts_, 0);
  EXPECT_EQ(strategy.stats().draft_tokens, 0);
  while (sequence_.cache->length() < context_) drive.Step(sequence_, strategy);
  EXPECT_EQ(std::ssize(sequence_.tokens), context_ + 1);
  EXPECT_GT(strategy.stats().accepted[0].draft_tokens, 150);
  EXPECT_LE(strategy.stats().draft_tokens, strategy.stats().accepted[0].draft_tokens + 5)
      << "alternatives";
}

// A fork that has no memory, is cancelled or is damaged does not end the text.
TEST_F(PartialDraftsTest, FailedDraftsEndNoText) {
  for (const ErrorKind kind : {ErrorKind::kCancelled, ErrorKind::kMemory, ErrorKind::kFormat}) {
    Begin();
    Speculative strategy = NewStrategy();
    rows_of_drafts_ = 0;
    on_draft_ = [&] {
      if (rows_of_drafts_ % 5 == 0) Throw(kind, "of a draft");
    };
    On().Continue(sequence_, strategy, 1000);
    EXPECT_GT(strategy.stats().accepted[0].draft_tokens, kind == ErrorKind::kCancelled ? 300 : 3);
    EXPECT_EQ(rows_of_drafts_ == 5, kind != ErrorKind::kCancelled) << "then it takes no more";
  }
}

TEST_F(PartialDraftsTest, ReleasesItsMemory) {
  const auto kv_pool = std::make_shared<KvPool>(LayoutOf(FakeModel::Geometry(), DType::kF32));
  Begin({.temperature = 0}, kv_pool);
  Speculative strategy = NewStrategy();
  Drive drive = On();
  drive.Continue(sequence_, strategy, 600);
  const int64_t text = PagesFor(sequence_.cache->length());
  EXPECT_GT(kv_pool->pages_in_use(), text);
  EXPECT_TRUE(strategy.ReleaseMemory());
  EXPECT_EQ(kv_pool->pages_in_use(), text);
  EXPECT_FALSE(strategy.ReleaseMemory());
  rows_of_drafts_ = 0;
  drive.Continue(sequence_, strategy, 100);
  EXPECT_EQ(rows_of_drafts_, 0);
}

}  // namespace
}  // namespace godwit::partial_drafts_test
