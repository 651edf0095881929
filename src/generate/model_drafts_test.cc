#include "generate/model_drafts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "generate/autoregressive.h"
#include "generate/speculative.h"
#include "kernels/dispatch.h"
#include "tests/drive_strategy.h"
#include "tests/fake_model.h"

namespace godwit::model_drafts_test {
namespace {

constexpr int32_t kVocab = 40;

int32_t NextOf(int32_t token, int64_t position) {
  return static_cast<int32_t>((7 * token + position * position) % kVocab);
}

// A text, and a draft model that is wrong wherever `errs` says so.
class ModelDraftsTest : public testing::Test {
 protected:
  std::unique_ptr<TextCache> NewText(const std::string& kv, int64_t context,
                                     std::shared_ptr<KvPool> pool = nullptr) const {
    return MakeTextCache(FakeModel::Geometry(),
                         {.spec = kv, .kv_type = DType::kF32, .context = context}, std::move(pool));
  }
  Speculative NewStrategy(const std::string& kv = "dense") {
    std::vector<std::unique_ptr<DraftSource>> sources;
    sources.push_back(std::make_unique<ModelDrafts>(
        ModelDrafts::Parts{
            .model = draft_,
            .new_text = [this, kv] { return NewText(kv, draft_context_, pool_of_drafts_); },
            .kept = kept_,
            .key = "",
            .chunk_tokens = 30},
        NoTime));
    return Speculative(std::move(sources), NoTime);
  }
  void Begin(int64_t prompt, const SamplerOptions& sampler = {.temperature = 0},
             const std::string& kv = "dense") {
    sequence_.tokens.assign(1, 3);
    while (std::ssize(sequence_.tokens) < prompt) {
      sequence_.tokens.push_back(static_cast<int32_t>((5 * sequence_.tokens.size()) % 31));
    }
    sequence_.cache = NewText(kv, 4000);
    sequence_.sampler = Sampler(sampler, kVocab);
  }
  Drive On() {
    return {.model = model_, .exec = {.pool = pool_, .kernels = kernels_, .workspace = workspace_}};
  }
  // The text of so many more tokens.
  std::vector<int32_t> Plain(int64_t prompt, int64_t tokens,
                             const SamplerOptions& sampler = {.temperature = 0},
                             const std::string& kv = "dense") {
    Begin(prompt, sampler, kv);
    Autoregressive plain;
    On().Continue(sequence_, plain, tokens);
    auto text = sequence_.tokens;
    Begin(prompt, sampler, kv);
    return text;
  }
  // Whether all tokens are those of a text that may be longer.
  bool IsBeginningOf(const std::vector<int32_t>& text) const {
    return sequence_.tokens.size() <= text.size() &&
           std::ranges::equal(sequence_.tokens, std::span(text).first(sequence_.tokens.size()));
  }
  // The tokens in the draft's cache, as far as it was read.
  std::vector<int32_t> ReadByDraft(size_t first = 0) const {
    std::vector<int32_t> cached;
    for (const FakeModel::Read& read : std::span(draft_->reads()).subspan(first)) {
      cached.resize(std::max(cached.size(), static_cast<size_t>(read.position)), -1);
      cached.resize(read.position);
      cached.insert(cached.end(), read.tokens.begin(), read.tokens.end());
    }
    return cached;
  }
  int64_t RowsOfDraft() const {
    int64_t rows = 0;
    for (const FakeModel::Read& read : draft_->reads()) rows += std::ssize(read.tokens);
    return rows;
  }

  std::function<bool(int64_t position)> errs_ = [](int64_t) { return false; };
  FakeModel model_{kVocab, NextOf};
  std::shared_ptr<FakeModel> draft_ =
      std::make_shared<FakeModel>(kVocab, [this](int32_t token, int64_t position) {
        return (NextOf(token, position) + (errs_(position) ? 1 : 0)) % kVocab;
      });
  int64_t draft_context_ = 4000;
  std::shared_ptr<KvPool> pool_of_drafts_;
  std::shared_ptr<DraftTexts> kept_ = std::make_shared<DraftTexts>();
  Sequence sequence_{.tokens = {}, .cache = nullptr, .sampler = Sampler({}, kVocab), .id = 7};
  ThreadPool pool_{1};
  const kernels::KernelTable& kernels_ = *kernels::SelectIsa("").table;
  Workspace workspace_;
};

TEST_F(ModelDraftsTest, RightDraftsSaveSteps) {
  const auto text = Plain(100, 1100);
  Speculative strategy = NewStrategy();
  Drive drive = On();
  drive.Continue(sequence_, strategy, 500);  // it learns their cost
  drive.steps = 0;
  drive.Continue(sequence_, strategy, 500);
  EXPECT_GT(500.0 / static_cast<double>(drive.steps), 7) << "of 9 at the most";
  EXPECT_TRUE(IsBeginningOf(text));
}

TEST_F(ModelDraftsTest, TextStaysWhateverTheDraftModelSays) {
  for (const int every : {1, 2, 5, 17}) {
    for (const char* kv : {"dense", "sinks:4+60"}) {
      errs_ = [every](int64_t position) { return position % every == 0; };
      const auto text = Plain(70, 900, {.temperature = 0}, kv);
      Speculative strategy = NewStrategy(kv);
      On().Continue(sequence_, strategy, 800);
      EXPECT_TRUE(IsBeginningOf(text)) << every << kv;
      // The second likeliest token is drafted, too, and now and then right.
      EXPECT_EQ(strategy.stats().accepted[0].draft_tokens > 100, every > 1) << every << kv;
    }
  }
}

TEST_F(ModelDraftsTest, DraftsFollowTheSamplersPenalties) {
  model_.other_logits = draft_->other_logits = -2;
  const SamplerOptions sampler{
      .repeat_last_n = 64, .repeat_penalty = 1.4f, .temperature = 1, .min_p = 0.01f, .seed = 3};
  const auto text = Plain(100, 1100, sampler);
  Speculative strategy = NewStrategy();
  Drive drive = On();
  drive.Continue(sequence_, strategy, 500);
  drive.steps = 0;
  drive.Continue(sequence_, strategy, 500);
  EXPECT_GT(500.0 / static_cast<double>(drive.steps), 7) << "the same draws: none was wrong";
  EXPECT_TRUE(IsBeginningOf(text));
}

// The cache of the draft model goes back with the text, and no token is read twice.
TEST_F(ModelDraftsTest, CacheFollowsTheText) {
  errs_ = [](int64_t position) { return position % 7 == 0; };
  const auto text = Plain(100, 700);
  Speculative strategy = NewStrategy();
  On().Continue(sequence_, strategy, 600);
  const auto cached = ReadByDraft();
  ASSERT_GT(cached.size(), 600u);
  const size_t same = std::ranges::mismatch(cached, text).in1 - cached.begin();
  EXPECT_GE(same + ChainDrafts::kMaxDraftTokens, cached.size());
  const auto wrong = strategy.stats().draft_tokens - strategy.stats().accepted[0].draft_tokens;
  EXPECT_LE(RowsOfDraft(), std::ssize(cached) + wrong);
}

TEST_F(ModelDraftsTest, PromptIsReadAChunkAStep) {
  Begin(300);
  Speculative strategy = NewStrategy();
  Drive drive = On();  // 16 tokens a step
  for (int step = 0; step < 12; ++step) {
    drive.Step(sequence_, strategy);
    const int64_t read = RowsOfDraft();
    EXPECT_LE(read, 16 * (step + 1));
    EXPECT_GE(read, 16 * (step + 1) - 64 - 16);
  }
  for (const FakeModel::Read& read : draft_->reads()) EXPECT_LE(std::ssize(read.tokens), 80);
}

// A text of which the model has a beginning from a cache.
TEST_F(ModelDraftsTest, CatchesUpByChunks) {
  const auto text = Plain(500, 300);
  const FakeModel::Read all{.position = 0, .tokens = sequence_.tokens};
  Autoregressive plain;
  On().Continue(sequence_, plain, 1);
  Speculative strategy = NewStrategy();
  On().Continue(sequence_, strategy, 200);
  EXPECT_TRUE(IsBeginningOf(text));
  EXPECT_GT(strategy.stats().accepted[0].draft_tokens, 50);
  int64_t largest = 0;
  for (const FakeModel::Read& read : draft_->reads()) {
    largest = std::max(largest, std::ssize(read.tokens));
  }
  EXPECT_LE(largest, 64) << "a chunk, or few tokens with the first draft token";
}

TEST_F(ModelDraftsTest, LaterTextsGoOnFromKeptOnes) {
  const auto text = Plain(200, 400);
  {
    Speculative strategy = NewStrategy();
    On().Continue(sequence_, strategy, 200);
    EXPECT_TRUE(strategy.ReleaseMemory());
    EXPECT_FALSE(strategy.ReleaseMemory()) << "nothing is left";
  }
  const size_t first = draft_->reads().size();
  const int64_t rows = RowsOfDraft();
  Speculative strategy = NewStrategy();
  On().Continue(sequence_, strategy, 100);
  EXPECT_TRUE(IsBeginningOf(text));
  EXPECT_GT(draft_->reads().at(first).position, 350) << "of a text of 400";
  EXPECT_LT(RowsOfDraft() - rows, 300);
  EXPECT_GT(strategy.stats().accepted[0].draft_tokens, 20);
  EXPECT_TRUE(kept_->Drop());
}

TEST_F(ModelDraftsTest, OtherContextsAndVocabulariesOnlyEndTheDrafts) {
  const auto text = Plain(100, 700);
  draft_context_ = 300;
  Speculative strategy = NewStrategy();
  On().Continue(sequence_, strategy, 600);
  EXPECT_TRUE(IsBeginningOf(text));
  EXPECT_GT(strategy.stats().accepted[0].draft_tokens, 50);
  EXPECT_LE(ReadByDraft().size(), 300u);

  draft_context_ = 4000;
  for (const int32_t vocab : {kVocab - 8, kVocab + 8}) {
    draft_ = std::make_shared<FakeModel>(vocab, [vocab](int32_t token, int64_t position) {
      const int32_t next = NextOf(token, position);
      return position % 3 == 0 ? vocab - 1 : std::min(next, vocab - 1);
    });
    Begin(100);
    Speculative other = NewStrategy();
    On().Continue(sequence_, other, 600);
    EXPECT_TRUE(IsBeginningOf(text)) << vocab;
    EXPECT_EQ(other.stats().accepted[0].draft_tokens > 50, vocab > kVocab) << vocab;
  }
}

TEST_F(ModelDraftsTest, WithoutMemoryThereAreNoDrafts) {
  const auto text = Plain(100, 700);
  const KvLayout layout = LayoutOf(FakeModel::Geometry(), DType::kF32);
  pool_of_drafts_ = std::make_shared<KvPool>(
      layout, std::make_shared<KvBudget>(layout.BytesFor(4 * kTileTokens)));
  Speculative strategy = NewStrategy();
  On().Continue(sequence_, strategy, 600);
  EXPECT_TRUE(IsBeginningOf(text));
  EXPECT_GT(strategy.stats().accepted[0].draft_tokens, 20);
  EXPECT_LT(strategy.stats().accepted[0].draft_tokens, 300);
  while (kept_->Drop()) continue;
  EXPECT_EQ(pool_of_drafts_->pages_in_use(), 0);
}

TEST(DraftTextsTest, KeepTheLongestAndTheLastUsed) {
  const auto text_of = [] {
    return MakeTextCache(FakeModel::Geometry(), {.kv_type = DType::kF32, .context = 4000});
  };
  FakeModel model(kVocab, NextOf);
  ThreadPool pool(1);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  const auto read = [&](const std::vector<int32_t>& tokens) {
    auto cache = text_of();
    Workspace::Scope scope(workspace);
    const Segment segment{.tokens = tokens, .text = cache.get()};
    model.Forward(exec, {&segment, 1}, workspace.Matrix<float>(std::ssize(tokens), 1));
    return cache;
  };
  DraftTexts kept;
  EXPECT_EQ(kept.Fork("a", std::vector{1, 2}), nullptr);
  const auto keep = [&](const std::string& key, std::vector<int32_t> tokens) {
    auto cache = read(tokens);
    kept.Keep(key, std::move(tokens), std::move(cache));
  };
  keep("a", {1, 2, 3});
  keep("a", {1, 2, 3, 4, 5});
  keep("b", {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(kept.Fork("a", std::vector{1, 2, 3, 4, 5, 6})->length(), 5);
  EXPECT_EQ(kept.Fork("a", std::vector{1, 2, 9, 4})->length(), 2);
  EXPECT_EQ(kept.Fork("b", std::vector{1, 2, 3, 4, 5, 6, 7})->length(), 6);
  EXPECT_EQ(kept.Fork("a", std::vector{9}), nullptr);
  EXPECT_EQ(kept.Fork("c", std::vector{1}), nullptr);
  EXPECT_TRUE(kept.Drop()) << "the longer text of a; the shorter one was its beginning";
  EXPECT_EQ(kept.Fork("a", std::vector{1, 2, 3}), nullptr);
  EXPECT_NE(kept.Fork("b", std::vector{1, 2, 3}), nullptr);
  for (int32_t i = 0; i < static_cast<int32_t>(DraftTexts::kMost); ++i) keep("a", {10 + i, 1});
  EXPECT_EQ(kept.Fork("b", std::vector{1, 2, 3}), nullptr) << "too many others came";
  int dropped = 0;
  while (kept.Drop()) ++dropped;
  EXPECT_EQ(dropped, DraftTexts::kMost);
}

}  // namespace
}  // namespace godwit::model_drafts_test
