// Engines of one process as ranks that share a context.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "dist/local.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"
#include "tests/session_of.h"

namespace godwit {
namespace {

using testing::HasSubstr;
const SessionOptions kStar = {.prefill = "star:block=40", .kv_type = "f32"};

struct Outcome {
  GenerateResult result;
  std::string error;
};

// options(rank): rank 0 alone has the prompt. kv_bytes(rank): its memory for KV caches.
std::vector<Outcome> Generate(
    int ranks, const Tokens& prompt, const std::function<GenerateOptions(int)>& options,
    const SessionOptions& session = kStar,
    const std::function<int64_t(int)>& kv_bytes = [](int) { return 0; }) {
  LocalWorld world(ranks);
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Outcome& mine = outcomes[static_cast<size_t>(rank)];
      try {
        const Engine::Impl engine(kTiny, {.threads = 1, .kv_memory_bytes = kv_bytes(rank)},
                                  world.Rank(rank));
        Session one = SessionOf(engine, session);
        mine.result = one.Generate(rank == 0 ? prompt : Tokens(), options(rank));
      } catch (const Error& error) {
        mine.error = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

TEST(Ranks, AnswerAsOneDoes) {
  const Tokens prompt = Prompt(1, 333);
  GenerateOptions options = Greedy(20, 30);
  options.top_logprobs = 0;
  const GenerateResult alone =
      Engine(kTiny, {.threads = 1}).NewSession(kStar).Generate(prompt, options);
  for (const int ranks : {1, 2, 4}) {
    const auto outcomes = Generate(ranks, prompt, [&](int) { return options; });
    for (const Outcome& one : outcomes) {
      ASSERT_EQ(one.error, "");
      EXPECT_EQ(one.result.tokens, alone.tokens);
      for (size_t i = 0; i < alone.logprobs.size(); ++i) {
        EXPECT_NEAR(one.result.logprobs[i].logprob, alone.logprobs[i].logprob, 1e-4);
        EXPECT_EQ(one.result.logprobs[i].logprob, outcomes[0].result.logprobs[i].logprob);
      }
    }
  }
}

// Rank 0 alone knows a clock: the others read what it guesses.
TEST(Ranks, GuessTogether) {
  const Tokens prompt = Prompt(1, 333);
  for (const char* kv : {"dense", "blocks:block_size=64,second_block_count=40"}) {
    const SessionOptions session = {.kv = kv, .prefill = "star:block=64", .kv_type = "f32"};
    GenerateOptions options = Greedy(150, 30);
    options.top_logprobs = 0;
    const auto plain = Generate(
        3, prompt, [&](int) { return options; }, session);
    options.draft = "ngram";
    for (const Outcome& one : Generate(
             3, prompt, [&](int) { return options; }, session)) {
      ASSERT_EQ(one.error, "");
      EXPECT_EQ(one.result.tokens, plain[0].result.tokens);
      ASSERT_EQ(one.result.logprobs.size(), plain[0].result.logprobs.size());
      for (size_t i = 0; i < one.result.logprobs.size(); ++i) {
        EXPECT_EQ(one.result.logprobs[i].logprob, plain[0].result.logprobs[i].logprob);
      }
    }
  }
}

TEST(Ranks, GuessByNoPartOfTheirs) {
  GenerateOptions options = Greedy(5, 30);
  options.draft = "partial";
  const SessionOptions session = {.prefill = "star:block=64"};
  for (const Outcome& one : Generate(
           2, Prompt(1, 333), [&](int) { return options; }, session)) {
    EXPECT_THAT(one.error, HasSubstr("and 2 share it: leave it out, or take one rank"));
  }
}

// The context is read exactly, so it is dense attention that they repeat.
TEST(Ranks, InARingAnswerAsDenseDoes) {
  GenerateOptions options = Greedy(20, 30);
  options.top_logprobs = 0;
  struct Case {
    int64_t tokens;
    const char* kv_type;
    double error;  // of the answer alone: what is stored is rounded
  };
  for (const Case& one_case :
       {Case{990, "f32", 1e-4}, Case{650, "bf16", 2e-2}, Case{287, "int8", 2e-2}}) {
    const Tokens prompt = Prompt(1, one_case.tokens);
    const SessionOptions dense = {.kv_type = one_case.kv_type};
    const GenerateResult alone =
        Engine(kTiny, {.threads = 1}).NewSession(dense).Generate(prompt, options);
    SessionOptions ring = dense;
    ring.prefill = "ring:chunk=64";
    for (const int ranks : {1, 2, 3, 4}) {
      const auto outcomes = Generate(
          ranks, prompt, [&](int) { return options; }, ring);
      for (const Outcome& one : outcomes) {
        ASSERT_EQ(one.error, "");
        EXPECT_EQ(one.result.tokens, alone.tokens) << ranks << " ranks, " << one_case.kv_type;
        for (size_t i = 0; i < alone.logprobs.size(); ++i) {
          EXPECT_NEAR(one.result.logprobs[i].logprob, alone.logprobs[i].logprob, one_case.error);
          EXPECT_EQ(one.result.logprobs[i].logprob, outcomes[0].result.logprobs[i].logprob);
        }
      }
    }
  }
}

TEST(Ranks, OneThatEndsWhileARingReadsEndsAll) {
  const SessionOptions ring = {.prefill = "ring:chunk=64", .kv_type = "f32"};
  const auto options = [](int rank) {
    GenerateOptions asked = Greedy(20);
    if (rank == 1) {
      asked.on_progress = [](const PromptProgress& progress) {
        if (progress.done_tokens >= 300) Throw(ErrorKind::kInput, "enough");
      };
    }
    return asked;
  };
  const auto outcomes = Generate(3, Prompt(2, 990), options, ring);
  for (const int rank : {0, 2}) {
    EXPECT_THAT(outcomes[static_cast<size_t>(rank)].error, HasSubstr("rank 1 has ended"));
  }
}

// What the others would have drawn, or taken for the question, does not matter.
TEST(Ranks, TheFirstChooses) {
  const auto outcomes = Generate(2, Prompt(2, 200), [](int rank) {
    GenerateOptions options = Greedy(20, 5 + rank);
    options.sampler = {.temperature = 5, .seed = 3 + static_cast<uint64_t>(rank)};
    return options;
  });
  EXPECT_EQ(outcomes[0].error, "");
  EXPECT_EQ(std::ssize(outcomes[0].result.tokens), 20);
  EXPECT_EQ(outcomes[1].result.tokens, outcomes[0].result.tokens);
}

TEST(Ranks, OptionsThatDifferAreNamed) {
  const auto outcomes = Generate(2, Prompt(2, 200), [](int rank) { return Greedy(20 + rank); });
  for (const Outcome& one : outcomes) {
    EXPECT_EQ(one.error,
              "the ranks differ in the longest answer: rank 0 has 20, and rank 1 has 21");
  }
}

TEST(Ranks, OneThatFailsEndsAll) {
  const auto outcomes = Generate(3, Prompt(2, 200), [](int rank) {
    GenerateOptions options = Greedy(20);
    if (rank == 2) options.timeout_ms = 1e-3;
    return options;
  });
  for (const int rank : {0, 1}) {
    EXPECT_THAT(outcomes[static_cast<size_t>(rank)].error,
                HasSubstr("rank 2 has ended: it was asked to stop"));
  }
}

// Of 15 blocks a rank has four, the last one three, and each the anchor and the question: no page
// more.
TEST(Ranks, AContextFitsThatFitsOnAllTogether) {
  const SessionOptions star = {.prefill = "star:block=64", .kv_type = "f32"};
  const Engine engine(kTiny, {.threads = 1});
  const Tokens prompt = Prompt(1, 15 * 64 + 10);
  const GenerateOptions options = Greedy(20, 10);
  const auto bytes = [&](int64_t pages) { return engine.KvBytes(pages * 64, star); };
  for (const Outcome& one : Generate(
           4, prompt, [&](int) { return options; }, star, [&](int) { return bytes(6); })) {
    EXPECT_EQ(one.error, "");
    EXPECT_EQ(one.result.tokens, engine.NewSession(star).Generate(prompt, options).tokens);
  }
  for (const Outcome& one : Generate(
           4, prompt, [&](int) { return options; }, star,
           [&](int rank) { return bytes(rank == 2 ? 5 : 6); })) {
    EXPECT_THAT(one.error, HasSubstr("the part of 970 tokens that rank 2 keeps takes "));
    EXPECT_THAT(one.error, HasSubstr(" for KV caches: let there be more ranks"));
  }
}

// With a budget for all blocks nobody has to choose.
TEST(Ranks, EachChoosesAmongItsBlocks) {
  const Tokens prompt = Prompt(1, 15 * 64 + 10);
  GenerateOptions options = Greedy(20, 10);
  options.top_logprobs = 0;
  SessionOptions session = {.prefill = "star:block=64", .kv_type = "f32"};
  const auto logprobs = [&](const std::string& kv) {
    session.kv = kv;
    const auto outcomes = Generate(
        3, prompt, [&](int) { return options; }, session);
    std::vector<float> of_first;
    for (const Outcome& one : outcomes) {
      EXPECT_EQ(one.error, "");
      std::vector<float> all;
      for (const TokenLogprobs& token : one.result.logprobs) all.push_back(token.logprob);
      if (of_first.empty()) of_first = all;
      EXPECT_EQ(all, of_first);
    }
    return of_first;
  };
  const auto dense = logprobs("dense");
  EXPECT_EQ(logprobs("blocks:second_block_count=15"), dense);
  EXPECT_NE(logprobs("blocks:initial=0,local_windows_len=1,second_block_count=3"), dense);
}

// Signs of each rank's blocks take a page.
TEST(Ranks, WhatStandsForBlocksTakesMemory) {
  const SessionOptions dense = {.prefill = "star:block=64", .kv_type = "f32"};
  SessionOptions star = dense;
  star.kv = "blocks:initial=0,local_windows_len=1,second_block_count=3";
  const Engine engine(kTiny, {.threads = 1});
  for (const int64_t pages : {6, 7}) {
    for (const Outcome& one : Generate(
             4, Prompt(1, 15 * 64 + 10), [&](int) { return Greedy(20, 10); }, star,
             [&](int) { return engine.KvBytes(pages * 64, dense); })) {
      EXPECT_THAT(one.error, HasSubstr(pages == 6 ? "rank 1 keeps takes" : ""));
      EXPECT_EQ(one.error.empty(), pages == 7) << one.error;
    }
  }
}

TEST(Ranks, TheOthersLearnWhyOneFails) {
  const auto outcomes = Generate(3, Prompt(2, 200), [](int rank) {
    GenerateOptions options = Greedy(20);
    if (rank == 1) options.top_logprobs = -7;
    return options;
  });
  EXPECT_EQ(outcomes[0].error, "rank 1 has ended: " + outcomes[1].error);
  EXPECT_THAT(outcomes[1].error, HasSubstr("top_logprobs must be at least 0"));
}

TEST(Ranks, ContextsOfTooFewBlocksAreRefused) {
  for (const Outcome& one : Generate(2, Prompt(2, 41), [](int) { return Greedy(20); })) {
    EXPECT_THAT(one.error, HasSubstr("has 1 block of 40, too few for 2 ranks"));
  }
}

}  // namespace
}  // namespace godwit
