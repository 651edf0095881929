// Prices foretold are those of steps that follow, by a clock that only the model's steps move.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "attention/make_policy.h"
#include "base/file.h"
#include "base/json.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"
#include "engine/generation_impl.h"
#include "ops/kv_layout.h"
#include "tests/fake_model.h"
#include "text/fake_tokenizer.h"

namespace godwit::price_test {
namespace {

constexpr int64_t kVocab = FakeTokenizer::kEos + 1, kContext = 20'000;
constexpr const char* kStar = "star:block=1K,anchor=0";
constexpr double kStepMs = 30, kRowMs = 2, kKeyMs = 0.01;

std::atomic<double> clock_ms = 0;

// A model whose steps take a made-up time: for each, for each row, and for each key that a row
// meets.
struct Priced {
  explicit Priced(int64_t kv_memory_bytes = 0) {
    auto fake = std::make_unique<FakeModel>(
        kVocab, [](int32_t token, int64_t) { return token == 'z' ? 'a' : token + 1; });
    fake->on_step = [steps = fake.get(), this] {
      double ms = kStepMs;
      for (const Segment& segment : steps->segments()) {
        if (also_on_step) also_on_step(segment);
        const int64_t begin = segment.text->length();
        for (int64_t i = 0; i < std::ssize(segment.tokens); ++i) {
          ms += kRowMs + kKeyMs * static_cast<double>(Seen(segment, begin + i));
        }
      }
      clock_ms = clock_ms + ms;
      ++steps_taken;
    };
    engine = std::make_unique<Engine::Impl>(
        std::move(fake), FakeModel::Spec(kVocab, kContext), std::make_unique<FakeTokenizer>(),
        SpecialTokens{.eos_ids = {FakeTokenizer::kEos}},
        LoadOptions{.threads = 1, .kv_memory_bytes = kv_memory_bytes},
        [] { return clock_ms.load(); });
  }

  // Dense, or read by blocks of 1,024 without an anchor.
  static int64_t Seen(const Segment& segment, int64_t position) {
    const bool star = !segment.text->policy().facts().prefill.empty();
    return star && segment.phase == Phase::kPrompt && position < kStarQuestion ? position % 1024 + 1
                                                                               : position + 1;
  }
  static constexpr int64_t kStarQuestion = 8000;

  GenerateResult Run(const Tokens& prompt, GenerateOptions options,
                     const SessionOptions& session = {}) const {
    return Submit(prompt, options, session).Wait();
  }
  Generation Submit(const Tokens& prompt, GenerateOptions options,
                    const SessionOptions& session = {}) const {
    const std::shared_ptr<const Engine::Impl> borrowed(std::shared_ptr<void>(), engine.get());
    return SubmitTo(borrowed, prompt, options, session);
  }

  // The times of a request to its first token, and of the next one.
  struct Times {
    double first_token_ms, token_ms;
  };
  Times TimesOf(const Tokens& prompt, int64_t query_tokens, const SessionOptions& session) const {
    double before = clock_ms;
    Run(prompt, Greedy(1, query_tokens), session);
    const double first = clock_ms - before;
    Tokens more = prompt;
    more.push_back('a');
    before = clock_ms;
    Run(more, Greedy(1, query_tokens + 1), session);  // reads one token
    return {first, clock_ms - before};
  }

  int64_t steps_taken = 0;
  std::function<void(const Segment&)> also_on_step;  // by the computing thread
  std::unique_ptr<Engine::Impl> engine;
};

Tokens Letters(int64_t count, int64_t seed = 0) {
  Tokens text;
  for (int64_t i = 0; i < count; ++i) {
    text.push_back(static_cast<int32_t>('a' + (i * i * 7 + i * seed + seed) % 26));
  }
  return text;
}

void ExpectForetold(const RequestPrice& price, const Priced::Times& times) {
  EXPECT_NEAR(price.first_token_ms, times.first_token_ms, 1e-3 * times.first_token_ms);
  EXPECT_NEAR(price.token_ms, times.token_ms, 1e-3 * times.token_ms);
}

// Prompts of many lengths, read in each way.
TEST(PriceTest, AProbeForetellsARequest) {
  for (const int64_t length : {300, 3000, 9000}) {
    for (const char* prefill : {"", kStar}) {
      const Priced priced;
      const SessionOptions session{.prefill = prefill};
      const Tokens prompt = Letters(length);
      const int64_t question = std::max<int64_t>(1, length - Priced::kStarQuestion);
      const RequestPrice price = priced.engine->PriceOf(prompt, Greedy(1, question), session);
      EXPECT_EQ(price.prompt_tokens, length);
      EXPECT_EQ(price.cached_tokens, 0);
      EXPECT_EQ(price.prefill.empty(), std::string(prefill).empty());
      EXPECT_TRUE(price.near_measured || *prefill != 0);
      EXPECT_GT(price.kv_bytes, 0);
      ExpectForetold(price, priced.TimesOf(prompt, question, session));
    }
  }
}

TEST(PriceTest, WhatWasProbedIsNotProbedAgain) {
  Priced priced;
  priced.engine->PriceOf(Letters(2000), Greedy(1), {});
  const int64_t probed = priced.steps_taken;
  EXPECT_GT(probed, 0);
  EXPECT_LT(probed, 30) << "a short probe";
  priced.engine->PriceOf(Letters(2000, 1), Greedy(1), {});
  priced.engine->PriceOf(Letters(3000, 1), Greedy(1), {});
  EXPECT_EQ(priced.steps_taken, probed);
}

// An answer that begins behind a probe's first step has ended before the last one.
TEST(PriceTest, AProbeLetsOthersStepInBetween) {
  Priced priced;
  std::vector<bool> of_probe;  // of each step
  std::optional<Generation> answer;
  priced.also_on_step = [&](const Segment& segment) {
    of_probe.push_back(segment.text->policy().facts().prefill.empty());
    if (!answer) answer = priced.Submit(Letters(10), Greedy(5), {.prefill = kStar});
  };
  priced.engine->PriceOf(Letters(2000), Greedy(1), {});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->Wait().tokens.size(), 5);
  ASSERT_GT(std::ranges::count(of_probe, true), 7);
  EXPECT_EQ(std::ranges::count(of_probe, false), 5);
  EXPECT_TRUE(of_probe.front() && of_probe.back());
}

// Passages in several orders, of which some were read before. To take tokens from another text
// takes no time by this clock.
TEST(PriceTest, PassagesAreForetold) {
  const Tokens head = Letters(100, 1), question = Letters(30, 2);
  for (const int64_t read_anew : {0, 32, 5000}) {
    const Priced priced;
    const std::shared_ptr<const Engine::Impl> borrowed(std::shared_ptr<void>(),
                                                       priced.engine.get());
    for (const std::vector<int>& order :
         {std::vector{3, 4, 5}, {5, 3, 4}, {3, 4, 5}, {6, 5}, {5}, {7, 8, 9, 10, 11, 12}}) {
      Tokens prompt = head;
      PassagePlaces places{.ends = {std::ssize(head)}, .read_anew = read_anew};
      std::vector<Tokens> passages;
      for (const int which : order) {
        passages.push_back(Letters(700 + 100 * which, which));
        prompt.insert(prompt.end(), passages.back().begin(), passages.back().end());
        places.ends.push_back(std::ssize(prompt));
      }
      prompt.insert(prompt.end(), question.begin(), question.end());
      const RequestPrice price =
          priced.engine->PriceOf(prompt, places, Greedy(1, std::ssize(question)), {});
      EXPECT_TRUE(price.near_measured);
      EXPECT_EQ(price.prompt_tokens, std::ssize(prompt));
      const double before = clock_ms;
      Session::Impl session(borrowed, SessionOptions{});
      const PassagesRead read = session.ReadPassages(head, passages, read_anew, {});
      session.Generate(prompt, Greedy(1, std::ssize(question)));
      EXPECT_EQ(price.cached_tokens, read.cached_tokens);
      const double first_ms = clock_ms - before;
      // Steps of one row behind each passage lie a little beside the line through others.
      EXPECT_NEAR(price.first_token_ms, first_ms, 4e-3 * first_ms) << testing::PrintToString(order);
    }
  }
}

TEST(PriceTest, TakenTokensHaveACost) {
  const Priced priced;
  const Tokens prompt = Letters(2000);
  const auto price_of = [&](int64_t read_anew) {
    const PassagePlaces places{.ends = {100, 900, 1900}, .read_anew = read_anew};
    return priced.engine->PriceOf(prompt, places, Greedy(1), {}).first_token_ms;
  };
  const double before = price_of(0), all_anew = price_of(1000);
  const auto kind = MeasuredCosts::KindOf(TextPlan(priced.engine->served, {}).options());
  constexpr double kTokenMs = 3;
  constexpr int64_t kManyTokens = 1'000'000;
  priced.engine->scheduler->costs().RecordReuse(kind, kManyTokens,
                                                kTokenMs * static_cast<double>(kManyTokens));
  constexpr double kTaken = 1000;  // of the second passage
  EXPECT_NEAR(price_of(0) - before, kTokenMs * kTaken, 0.01 * kTokenMs * kTaken);
  EXPECT_EQ(price_of(1000), all_anew);
}

TEST(PriceTest, PassagesStandInTheirPrompt) {
  const Priced priced;
  const Tokens prompt = Letters(500);
  const auto refusal = [&](std::vector<int64_t> ends, int64_t read_anew,
                           const SessionOptions& session = {}) {
    return std::string(
        ErrorOf([&] {
          priced.engine->PriceOf(prompt, {std::move(ends), read_anew}, Greedy(1), session);
        }).what());
  };
  for (const std::vector<int64_t>& ends :
       {std::vector<int64_t>{}, {0, 100}, {100, 501}, {200, 100, 300}}) {
    EXPECT_THAT(refusal(ends, 0), testing::HasSubstr("within a prompt of 500 tokens"));
  }
  EXPECT_THAT(refusal({10, 20}, -1), testing::HasSubstr("of 0 or more"));
  EXPECT_THAT(refusal({10, 200, 300}, 0, {.kv = "sinks:4+60"}),
              testing::HasSubstr("which forgets tokens"));
  EXPECT_THAT(refusal({10, 200}, 0, {.prefill = "star:block=quarter"}),
              testing::HasSubstr("in another way in each prompt"));
}

// A request does not fail for want of memory that a probe holds.
TEST(PriceTest, ARequestWaitsForTheMemoryOfAProbe) {
  const Tokens prompt = Letters(2000);
  const int64_t kv_bytes = Priced().engine->PriceOf(prompt, Greedy(1), {}).kv_bytes;
  Priced priced(kv_bytes);
  std::optional<Generation> answer;
  priced.also_on_step = [&](const Segment& segment) {
    if (!answer && segment.text->length() > 64) answer = priced.Submit(prompt, Greedy(1));
  };
  priced.engine->PriceOf(Letters(1500), Greedy(1), {});
  ASSERT_TRUE(answer.has_value()) << "the probe was shorter";
  EXPECT_EQ(answer->Wait().tokens.size(), 1);
}

// Requests are measured, too, so that nothing is left to probe.
TEST(PriceTest, AServedRequestForetellsTheNext) {
  Priced priced;
  priced.Run(Letters(4000), Greedy(2000));
  priced.Run(Letters(100, 2), Greedy(5));
  const int64_t steps = priced.steps_taken;
  const Tokens prompt = Letters(6000, 3);
  const RequestPrice price = priced.engine->PriceOf(prompt, Greedy(1), {});
  EXPECT_EQ(priced.steps_taken, steps);
  ExpectForetold(price, priced.TimesOf(prompt, 1, {}));
}

TEST(PriceTest, CachedTokensAreFree) {
  const Priced priced;
  const Tokens prompt = Letters(3000);
  const double whole_ms = priced.engine->PriceOf(prompt, Greedy(1), {}).first_token_ms;
  priced.Run(prompt, Greedy(1));
  Tokens longer = prompt;
  for (const int32_t token : Letters(100, 5)) longer.push_back(token);
  const RequestPrice price = priced.engine->PriceOf(longer, Greedy(1), {});
  const double before = clock_ms;
  const GenerateResult result = priced.Run(longer, Greedy(1));
  EXPECT_EQ(price.cached_tokens, result.cached_tokens);
  EXPECT_GE(price.cached_tokens, 2900);
  EXPECT_EQ(price.disk_tokens, 0);
  EXPECT_NEAR(price.first_token_ms, clock_ms - before, 1e-3 * price.first_token_ms);
  EXPECT_LT(price.first_token_ms, 0.1 * whole_ms);
  // Nothing is cached for another owner.
  EXPECT_EQ(priced.engine->PriceOf(longer, Greedy(1), {.owner = "another"}).cached_tokens, 0);
}

TEST(PriceTest, TokensOnTheDiskAreCounted) {
  const TempFolder folder;
  const LoadOptions options{.threads = 1, .cache_dir = folder.path().string()};
  const Tokens prompt = Prompt(1, 300);
  { Engine(kTiny, options).Submit(prompt, Greedy(1)).Wait(); }
  const Engine engine(kTiny, options);
  const RequestPrice price = engine.PriceOf(prompt, Greedy(1));
  const GenerateResult result = engine.Submit(prompt, Greedy(1)).Wait();
  EXPECT_EQ(price.cached_tokens, result.cached_tokens);
  EXPECT_EQ(price.disk_tokens, result.disk_tokens);
  EXPECT_GT(price.disk_tokens, 0);
  EXPECT_EQ(engine.PriceOf(prompt, Greedy(1)).disk_tokens, 0) << "now it is in memory";
}

// Draft tokens are priced by what they saved before.
TEST(PriceTest, DraftTokensCountOnceTheyWereUsed) {
  const Priced priced;
  const Tokens prompt = [] {
    Tokens text;
    for (int i = 0; i < 520; ++i) text.push_back('a' + i % 26);
    return text;
  }();
  GenerateOptions options = Greedy(200);
  options.draft = "ngram";
  const RequestPrice before = priced.engine->PriceOf(prompt, options, {});
  EXPECT_FALSE(before.draft_measured);
  const GenerateResult result = priced.Run(prompt, options);
  ASSERT_GT(result.drafts->accepted, 50);
  const RequestPrice after = priced.engine->PriceOf(prompt, options, {});
  EXPECT_TRUE(after.draft_measured);
  EXPECT_LT(after.token_ms, 0.8 * before.token_ms);
  EXPECT_FALSE(priced.engine->PriceOf(prompt, Greedy(1), {}).draft_measured);
}

// Policies decide over the work, storages over its cost.
TEST(PriceTest, EveryPolicyAndStorageHasAPrice) {
  const Engine engine(kTiny, {.threads = 1});
  for (const PolicyKind& kind : AllPolicies()) {
    for (const char* prefill : {"", "window:32", "star:block=64,anchor=64"}) {
      for (const KvType& type : kKvTypes) {
        const SessionOptions session{.kv = std::string(kind.ample_example),
                                     .prefill = prefill,
                                     .kv_type = std::string(type.name)};
        const RequestPrice price = engine.PriceOf(Prompt(1, 700), Greedy(1, 20), session);
        EXPECT_GT(price.first_token_ms, 0) << session.kv << prefill << session.kv_type;
        EXPECT_GT(price.token_ms, 0) << session.kv << prefill << session.kv_type;
        EXPECT_EQ(price.kv, session.kv);
      }
    }
  }
}

// Layers with a window, a recurrent state, other heads, an index, or the keys of another layer: a
// probe draws keys for each.
TEST(PriceTest, EveryFamilyHasAPrice) {
  const std::string goldens = GODWIT_SOURCE_DIR "/tests/golden/";
  const auto index = ParseJson(ReadTextFile(goldens + "index.json", 1 << 22), "index.json");
  std::set<std::string> families;
  for (const auto& golden : index) {
    const std::string path = golden["path"];
    if (!families.insert(golden["family"]).second) continue;
    const Engine engine(goldens + path, {.threads = 1});
    Tokens prompt;
    for (int32_t i = 0; i < 20; ++i) prompt.push_back(i);
    const RequestPrice price = engine.PriceOf(prompt, Greedy(1));
    EXPECT_GT(price.first_token_ms, 0) << path;
    EXPECT_GT(price.token_ms, 0) << path;
  }
  EXPECT_GT(families.size(), 50u);
}

TEST(PriceTest, RefusesWhatTheRequestWouldBeRefusedFor) {
  const Priced priced;
  const auto price = [&](const Tokens& prompt, const SessionOptions& session) {
    return ErrorOf(ErrorKind::kInput,
                   [&] { (void)priced.engine->PriceOf(prompt, Greedy(1), session); });
  };
  EXPECT_THAT(price(Letters(kContext + 1), {}), testing::HasSubstr("the context holds"));
  EXPECT_THAT(price(Letters(10), {.kv = "nonsense"}), testing::HasSubstr("nonsense"));
}

TEST(PriceTest, APrefixIsExplained) {
  const Priced priced;
  const Tokens first = Letters(1000);
  Tokens second = first;
  second[700] = 'A';
  const PrefixReport nothing = priced.engine->ExplainPrefix(second, Greedy(1), {});
  EXPECT_EQ(nothing.alike_tokens, 0);
  EXPECT_EQ(nothing.other_tokens, 0);
  EXPECT_EQ(nothing.mine.size(), 32);
  priced.engine->PriceOf(first, Greedy(1), {});
  priced.Run(first, Greedy(1));
  const PrefixReport report = priced.engine->ExplainPrefix(second, Greedy(1), {});
  EXPECT_EQ(report.alike_tokens, 700);
  EXPECT_EQ(report.other_tokens, 1000);
  EXPECT_EQ(report.cached_tokens, 700);
  ASSERT_EQ(report.mine.size(), 32);
  ASSERT_EQ(report.other.size(), 32);
  EXPECT_EQ(report.mine[0], 'A');
  EXPECT_EQ(report.other[0], first[700]);
  EXPECT_EQ(report.mine[1], report.other[1]);
  // 299 tokens in a chunk behind 700.
  const double expected = kStepMs + 300 * (kRowMs + kKeyMs * (700 + 150.5));
  EXPECT_NEAR(report.lost_ms, expected, 1e-3 * expected);
  EXPECT_EQ(priced.engine->ExplainPrefix(first, Greedy(1), {}).lost_ms, 0);
  EXPECT_EQ(priced.engine->ExplainPrefix(second, Greedy(1), {.owner = "another"}).alike_tokens, 0);
}

}  // namespace
}  // namespace godwit::price_test
