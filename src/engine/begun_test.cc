// Outputs that had begun in an earlier call: the rest is that of a call without an end in between.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_test_support.h"
#include "godwit/version.h"

namespace godwit::begun_test {
namespace {

struct Way {
  const char* kv;
  const char* prefill;
  const char* draft;
};

class BegunTest : public testing::TestWithParam<Way> {
 protected:
  static const Engine& TinyEngine() {
    static const Engine engine(kTiny, {.threads = 2});
    return engine;
  }
  static SessionOptions Session() {
    static int calls = 0;  // each has an owner of its own, so that none finds a cached text
    return {.kv = GetParam().kv,
            .prefill = GetParam().prefill,
            .chunk_tokens = 64,
            .owner = std::to_string(calls++)};
  }
  static GenerateOptions Options(double temperature) {
    GenerateOptions options = Greedy(60, /*query_tokens=*/9);
    options.draft = GetParam().draft;
    options.sampler.temperature = static_cast<float>(temperature);
    options.sampler.seed = 11;
    options.sampler.repeat_penalty = 1.1F;
    return options;
  }
};

TEST_P(BegunTest, GoesOnWithTheSameTokens) {
  const Tokens prompt = Prompt(3, 300);
  for (const double temperature : {0.0, 1.0}) {
    GenerateOptions options = Options(temperature);
    options.sequence = 2;
    const GenerateResult whole = TinyEngine().Submit(prompt, options, Session()).Wait();
    ASSERT_EQ(whole.tokens.size(), 60u);
    for (const size_t begun : {1, 7, 31, 59, 60}) {
      options.begun.assign(whole.tokens.begin(),
                           whole.tokens.begin() + static_cast<int64_t>(begun));
      const GenerateResult rest = TinyEngine().Submit(prompt, options, Session()).Wait();
      EXPECT_EQ(rest.tokens, whole.tokens) << begun;
      EXPECT_EQ(rest.text, whole.text);
      EXPECT_EQ(rest.finish_reason, whole.finish_reason);
      EXPECT_LE(rest.cached_tokens, rest.prompt_tokens);
      EXPECT_EQ(rest.prompt_tokens, whole.prompt_tokens);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, BegunTest,
    testing::Values(Way{"dense", "", ""}, Way{"dense", "", "ngram"},
                    Way{"blocks:initial=0,local_windows_len=1,second_block_count=3", "", ""},
                    Way{"blocks:initial=0,local_windows_len=1,second_block_count=3", "", "ngram"},
                    Way{"sinks:4+124", "", ""}, Way{"sinks:4+124", "", "ngram"},
                    Way{"dense", "star:block=64", ""}, Way{"dense", "window:100", "ngram"}));

TEST(BegunEnds, AnOutputThatHadEndedIsReadByNobody) {
  const Engine engine(kTiny, {.threads = 1});
  GenerateOptions options = Greedy(40);
  const Tokens prompt = Prompt(1, 30);
  const std::string text = engine.Submit(prompt, options).Wait().text;
  options.stop = {text.substr(text.size() / 2, 3)};
  const GenerateResult whole = engine.Submit(prompt, options).Wait();
  ASSERT_EQ(whole.finish_reason, FinishReason::kStop);
  options.begun = whole.tokens;
  const GenerateResult again = engine.Submit(prompt, options).Wait();
  EXPECT_EQ(again.text, whole.text);
  EXPECT_EQ(again.tokens, whole.tokens);
  EXPECT_EQ(again.finish_reason, FinishReason::kStop);
  EXPECT_EQ(again.stop, whole.stop);
  EXPECT_EQ(again.read_tokens, 0);
}

TEST(BegunEnds, LogprobsAreComputedAgain) {
  const Engine engine(kTiny, {.threads = 1});
  GenerateOptions options = GreedyWithLogprobs(20);
  const Tokens prompt = Prompt(1, 30);
  const GenerateResult whole = engine.Submit(prompt, options).Wait();
  options.begun.assign(whole.tokens.begin(), whole.tokens.begin() + 9);
  EXPECT_EQ(AnswerOf(engine.Submit(prompt, options).Wait()), AnswerOf(whole));
}

// The parts of a text that come with its tokens are the same, however the tokens come.
TEST(EventParts, DependOnTheTokensAlone) {
  const Engine engine(kTiny, {.threads = 1});
  const Tokens prompt = engine.Tokenize("Once upon a time there was. Once upon a time there was");
  const auto parts_of = [&](const char* draft, size_t begun) {
    GenerateOptions options = Greedy(80);
    options.sampler.temperature = 1;
    options.draft = draft;
    const GenerateResult whole = engine.Submit(prompt, options).Wait();
    options.begun.assign(whole.tokens.begin(), whole.tokens.begin() + static_cast<int64_t>(begun));
    Generation answer = engine.Submit(prompt, options);
    std::vector<std::string> parts;
    std::string held;
    for (bool done = false; !done;) {
      const Event event = answer.Next();
      EXPECT_EQ(event.text_ends.size(), event.tokens.size());
      int64_t begin = 0;
      for (const int64_t end : event.text_ends) {
        parts.push_back(
            event.text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
        begin = end;
      }
      held += event.text.substr(static_cast<size_t>(begin));
      done = event.done;
    }
    parts.push_back(held);
    return parts;
  };
  const auto plain = parts_of("", 0);
  EXPECT_EQ(plain.size(), 81u);
  EXPECT_EQ(parts_of("ngram", 0), plain);
  EXPECT_EQ(parts_of("ngram", 33), plain);
  EXPECT_EQ(parts_of("", 80), plain);
}

TEST(EngineFacts, TellWhatBitsDependOn) {
  const Engine engine(kTiny, {.threads = 1});
  const auto dense = engine.Facts({});
  EXPECT_EQ(engine.Facts({}), dense);
  EXPECT_NE(engine.Facts({.kv = "sinks:4+60"}), dense);
  EXPECT_NE(engine.Facts({.kv_type = "f32"}), engine.Facts({.kv_type = "int8"}));
  EXPECT_NE(engine.Facts({.prefill = "window:64"}), dense);
  EXPECT_EQ(engine.Facts({.owner = "somebody"}), dense);
  EXPECT_EQ(Engine(kTiny, {.threads = 2}).Facts({}), dense);
}

// The version without its patch, which keeps the bits.
TEST(EngineFacts, OutliveAPatchVersion) {
  const auto facts = Engine(kTiny, {.threads = 1}).Facts({});
  const std::pair<std::string, std::string> version = {
      "godwit", fmt::format("{}.{}", GODWIT_VERSION_MAJOR, GODWIT_VERSION_MINOR)};
  EXPECT_EQ(std::ranges::count(facts, version), 1);
}

}  // namespace
}  // namespace godwit::begun_test
