// Requests with drafts: everything that a request promises holds when a step accepts many tokens.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "base/test_support.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"
#include "tests/fake_model.h"
#include "tests/session_of.h"
#include "text/fake_tokenizer.h"

namespace godwit {
namespace {

using testing::HasSubstr;

constexpr int64_t kVocab = FakeTokenizer::kEos + 1;

// "abcdefghijklmnopqrstuvwxyz\n" over and over; behind position `eos` the text ends. A step takes
// its time, however many rows it has, so that guesses pay.
std::unique_ptr<Engine::Impl> Alphabet(int64_t eos = INT64_MAX) {
  auto model = std::make_unique<FakeModel>(kVocab, [eos](int32_t token, int64_t position) {
    if (position == eos) return int32_t{FakeTokenizer::kEos};
    return token == 'z' ? '\n' : token == '\n' ? 'a' : token + 1;
  });
  model->on_step = [] { std::this_thread::sleep_for(std::chrono::microseconds(500)); };
  return std::make_unique<Engine::Impl>(
      std::move(model), FakeModel::Spec(kVocab, 600), std::make_unique<FakeTokenizer>(),
      SpecialTokens{.eos_ids = {FakeTokenizer::kEos}}, LoadOptions{.threads = 1});
}

GenerateOptions With(GenerateOptions options, const char* draft) {
  options.draft = draft;
  return options;
}

// With and without drafts, each in a session of its own.
struct Both {
  GenerateResult plain, drafted;
  Tokens plain_text, drafted_text;
};
Both Generate(const Engine::Impl& engine, const GenerateOptions& options) {
  Both both;
  const Tokens prompt = {'a', 'b', 'c'};
  Session plain = SessionOf(engine), drafted = SessionOf(engine);
  both.plain = plain.Generate(prompt, options);
  both.drafted = drafted.Generate(prompt, With(options, "ngram"));
  both.plain_text.assign(plain.tokens().begin(), plain.tokens().end());
  both.drafted_text.assign(drafted.tokens().begin(), drafted.tokens().end());
  EXPECT_EQ(drafted.kv().seen, plain.kv().seen);
  return both;
}

void ExpectSame(const Both& both) {
  EXPECT_EQ(both.drafted.tokens, both.plain.tokens);
  EXPECT_EQ(both.drafted.text, both.plain.text);
  EXPECT_EQ(both.drafted.stop, both.plain.stop);
  EXPECT_EQ(both.drafted.finish_reason, both.plain.finish_reason);
  EXPECT_EQ(both.drafted_text, both.plain_text);
  EXPECT_FALSE(both.plain.drafts);
  ASSERT_TRUE(both.drafted.drafts);
}

TEST(Drafts, EndWhereTheTextEnds) {
  int64_t accepted = 0;
  for (int64_t end = 150; end < 165; ++end) {  // in all places of a path
    const auto engine = Alphabet(end);
    GenerateOptions options = Greedy(1000);
    options.ignore_eos = false;
    const Both both = Generate(*engine, options);
    ExpectSame(both);
    EXPECT_EQ(both.drafted.finish_reason, FinishReason::kStop);
    accepted += both.drafted.drafts->accepted;
  }
  EXPECT_GT(accepted, 500) << "or this shows nothing";
}

TEST(Drafts, EndAtStopStringsAndLimits) {
  const auto engine = Alphabet();
  for (const char* stop : {"mn", "z\na", "q"}) {
    GenerateOptions options = Greedy(1000);
    options.stop = {stop};
    ExpectSame(Generate(*engine, options));
  }
  for (int64_t tokens = 100; tokens < 112; ++tokens) {
    const Both both = Generate(*engine, Greedy(tokens));
    ExpectSame(both);
    EXPECT_EQ(std::ssize(both.drafted.tokens), tokens);
  }
  const Both full = Generate(*engine, Greedy(-1));
  ExpectSame(full);
  EXPECT_EQ(full.drafted.finish_reason, FinishReason::kContextFull);
}

// What came behind the end is not in the session's cache: the next turn goes on as without drafts.
TEST(Drafts, TheNextTurnGoesOnFromTheSameText) {
  const Engine engine(kTiny, {.threads = 1});
  for (const char* kv : {"dense", "sinks:4+124"}) {
    Session plain = engine.NewSession({.kv = kv}), drafted = engine.NewSession({.kv = kv});
    Tokens text = Prompt(1, 100);
    for (int turn = 0; turn < 4; ++turn) {
      const auto a = plain.Generate(text, Greedy(60 + turn));
      const auto b = drafted.Generate(text, With(Greedy(60 + turn), "ngram"));
      EXPECT_EQ(a.tokens, b.tokens) << kv << turn;
      EXPECT_EQ(a.cached_tokens, b.cached_tokens) << kv << turn;
      text.assign(drafted.tokens().begin(), drafted.tokens().end());
      text.insert(text.end(), {5, 6, 7});
    }
  }
}

TEST(Drafts, EveryTokenHasItsLogprobs) {
  const auto engine = Alphabet();
  GenerateOptions options = Greedy(300);
  options.top_logprobs = 1;
  const Both both = Generate(*engine, options);
  ExpectSame(both);
  EXPECT_GT(both.drafted.drafts->accepted, 50) << "or this shows nothing";
  ASSERT_EQ(both.drafted.logprobs.size(), both.drafted.tokens.size());
  for (size_t i = 0; i < both.drafted.tokens.size(); ++i) {
    EXPECT_EQ(both.drafted.logprobs[i].top[0].token, both.drafted.tokens[i]) << i;
    EXPECT_EQ(both.drafted.logprobs[i].logprob, both.plain.logprobs[i].logprob) << i;
  }
}

TEST(Drafts, ManyRequestsHaveTreesOfTheirOwn) {
  const Engine engine(kTiny, {.threads = 2, .step_tokens = 40});
  std::vector<Generation> generations;
  for (int i = 0; i < 9; ++i) {
    generations.push_back(
        engine.Submit(Prompt(i, 1 + 23 * i), With(Greedy(150 + i), i % 3 == 0 ? "" : "ngram")));
  }
  for (int i = 0; i < 9; ++i) {
    const auto result = generations[static_cast<size_t>(i)].Wait();
    Session alone = engine.NewSession({});
    EXPECT_EQ(result.tokens, alone.Generate(Prompt(i, 1 + 23 * i), Greedy(150 + i)).tokens) << i;
    EXPECT_EQ(result.drafts.has_value(), i % 3 != 0);
  }
}

// A tree whose paths have no room is left out of the step, and the text goes on.
TEST(Drafts, WithoutMemoryForTheirPathsTheTextGoesOn) {
  Session alone = Engine(kTiny, {.threads = 1}).NewSession({});
  const auto plain = alone.Generate(Prompt(3, 30), Greedy(200));
  const Engine engine(kTiny, {.threads = 1, .kv_memory_bytes = plain.kv.bytes});
  Session tight = engine.NewSession({});
  const auto drafted = tight.Generate(Prompt(3, 30), With(Greedy(200), "ngram"));
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_EQ(drafted.pauses, 0);
}

// There a token depends on those that are computed with it.
TEST(Drafts, ModelsWhoseInputsShareAScaleHaveNone) {
  for (const char* name : {"tensor_dynamic", "tensor_static"}) {
    const Engine engine(std::string(GODWIT_SOURCE_DIR "/tests/golden/int8/llama/") + name,
                        {.threads = 1});
    Session session = engine.NewSession({});
    const auto generate = [&] { session.Generate(Prompt(1, 3), With(Greedy(3), "ngram")); };
    if (std::string_view(name) == "tensor_static") {
      generate();
    } else {
      EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, generate), HasSubstr("it has no drafts"));
    }
  }
}

TEST(Drafts, SourcesThatMakeNoSenseAreRefused) {
  const Engine engine(kTiny, {.threads = 1});
  Session session = engine.NewSession({});
  const auto refused = [&](const char* draft) {
    return ErrorOf(ErrorKind::kInput,
                   [&] { session.Generate(Prompt(1, 3), With(Greedy(3), draft)); });
  };
  EXPECT_THAT(refused("eagle"),
              HasSubstr("unknown source of drafts \"eagle\"; there are: ngram, heads"));
  EXPECT_THAT(refused("ngram,"), HasSubstr("unknown source of drafts \"\""));
  EXPECT_THAT(refused("ngram,ngram"), HasSubstr("named twice"));
}

}  // namespace
}  // namespace godwit
