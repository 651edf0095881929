// Engines of one process as ranks that share the weights of a model, and contexts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/test_support.h"
#include "engine/generation_impl.h"
#include "engine/on_ranks_test_support.h"
#include "tests/session_of.h"

namespace godwit::tensor_parallel_test {
namespace {

using testing::HasSubstr;

const SessionOptions kDense = {.kv_type = "f32"};

// In f32, so that a sum in another order is all that differs.
Engine Alone() { return Engine(kTiny, {.threads = 1, .weights = "f32"}); }

// Calls OnRanks with groups of so many ranks that share weights.
std::vector<std::string> OnRanks(
    int ranks, int tensor_parallel, const std::function<void(const EnginePtr&)>& ask,
    const std::function<void(int)>& on_forgotten = [](int) {}, int64_t kv_bytes = 0) {
  const auto options = [&](int rank) {
    return LoadOptions{.threads = 1 + rank % 2,
                       .weights = "f32",
                       .kv_memory_bytes = kv_bytes,
                       .tensor_parallel = tensor_parallel};
  };
  return godwit::OnRanks(ranks, options, ask,
                         [&](int rank, std::span<const int32_t>) { on_forgotten(rank); });
}

GenerateOptions Answer(int64_t question) {
  GenerateOptions options = Greedy(20, question);
  options.top_logprobs = 0;
  return options;
}

void ExpectSame(const GenerateResult& result, const GenerateResult& expected) {
  ExpectNear(result, expected, 0);
}

// Ranks read a text whole, each for its heads: policies do not know of them.
TEST(TensorParallel, AnswersAsOneRankDoes) {
  const Tokens prompt = Prompt(1, 333);
  for (const std::string kv :
       {"dense", "sinks:4+60", "blocks:initial=1,local_windows_len=1,second_block_count=2"}) {
    SessionOptions session = kDense;
    session.kv = kv;
    const GenerateResult alone = Alone().NewSession(session).Generate(prompt, Answer(30));
    for (const int ranks : {2, 4}) {
      if (ranks == 4 && kv.starts_with("blocks")) continue;  // is refused
      const auto errors = OnRanks(ranks, ranks, [&](const EnginePtr& engine) {
        SCOPED_TRACE(fmt::format("{} ranks, {}", ranks, kv));
        const GenerateResult first = SessionOf(*engine, session).Generate(prompt, Answer(30));
        ExpectNear(first, alone, 1e-4);
        SessionOptions chunks = session;
        chunks.chunk_tokens = 7;
        ExpectSame(SessionOf(*engine, chunks).Generate(prompt, Answer(30)), first);
        GenerateOptions drafted = Answer(30);
        drafted.draft = "ngram";
        ExpectSame(SessionOf(*engine, session).Generate(prompt, drafted), first);
      });
      EXPECT_THAT(errors, testing::Each(""));
    }
  }
}

// Two groups of two ranks: the groups share the context.
TEST(TensorParallel, GroupsShareAContext) {
  const Tokens prompt = Prompt(1, 650);
  for (const char* prefill : {"ring:chunk=64", "star:block=40", "star:block=40,by-speed"}) {
    const SessionOptions session = {.prefill = prefill, .kv_type = "f32"};
    const GenerateResult alone = Alone().NewSession(session).Generate(prompt, Answer(30));
    const auto errors = OnRanks(4, 2, [&](const EnginePtr& engine) {
      SCOPED_TRACE(prefill);
      ExpectNear(SessionOf(*engine, session).Generate(prompt, Answer(30)), alone, 1e-4);
    });
    EXPECT_THAT(errors, testing::Each(""));
  }
}

TEST(TensorParallel, TextsOfABatchHaveTheBitsOfOneAlone) {
  const auto errors = OnRanks(2, 2, [&](const EnginePtr& engine) {
    std::vector<GenerateResult> alone;
    for (const int seed : {1, 2, 3}) {
      alone.push_back(SubmitTo(engine, Prompt(seed, 100), Answer(1), kDense).Wait());
    }
    std::vector<Generation> together;
    for (const int seed : {1, 2, 3}) {
      together.push_back(SubmitTo(engine, Prompt(seed, 100), Answer(1), kDense));
    }
    for (const size_t i : {0, 1, 2}) ExpectSame(together[i].Wait(), alone[i]);
  });
  EXPECT_THAT(errors, testing::Each(""));
}

// A rank keeps its heads of the window, however long the text is.
TEST(TensorParallel, AStreamTakesTheMemoryOfItsWindow) {
  const SessionOptions session = {.kv = "sinks:4+60", .kv_type = "f32", .chunk_tokens = 32};
  const Engine alone = Alone();
  const int64_t bytes = alone.KvBytes(320, kDense) / 2;
  const auto errors = OnRanks(
      2, 2,
      [&](const EnginePtr& engine) {
        const Tokens prompt = Prompt(1, 600);
        EXPECT_EQ(SessionOf(*engine, session).Generate(prompt, Greedy(10)).tokens,
                  alone.NewSession(session).Generate(prompt, Greedy(10)).tokens);
        EXPECT_EQ(ErrorOf([&] { SessionOf(*engine, kDense).Generate(prompt, Greedy(10)); }).kind(),
                  ErrorKind::kMemory);
      },
      [](int) {}, bytes);
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(TensorParallel, GivesLogits) {
  const Tokens text = Prompt(1, 200);
  const auto logits = [&](Session session) {
    std::vector<float> all;
    session.Logits(
        text,
        [&](int64_t, std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); },
        /*first=*/150);
    return all;
  };
  const auto alone = logits(Alone().NewSession(kDense));
  for (const char* prefill :
       {"", "ring:chunk=64"}) {  // the ring reads what stands before the question
    SessionOptions session = kDense;
    session.prefill = prefill;
    std::vector<float> shared;
    const auto errors = OnRanks(4, *prefill == 0 ? 4 : 2, [&](const EnginePtr& engine) {
      shared = logits(SessionOf(*engine, session));
    });
    EXPECT_THAT(errors, testing::Each(""));
    ASSERT_EQ(shared.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(shared[i], alone[i], 1e-4);
  }
}

TEST(TensorParallel, RefusesChoicesByQueriesOfOtherRanks) {
  const auto refusal = [](int ranks, const char* kv) {
    std::string error;
    OnRanks(ranks, ranks, [&](const EnginePtr& engine) {
      error = ErrorOf(ErrorKind::kUnsupported, [&] { SessionOf(*engine, {.kv = kv}); });
    });
    return error;
  };
  EXPECT_THAT(refusal(4, "blocks"), HasSubstr("several heads, and 4 ranks that share the weights"));
  EXPECT_THAT(refusal(2, "blocks:head_select_mode=SHARED"), HasSubstr("choose for each head"));
}

TEST(TensorParallel, RefusesWhatNeedsAllWeights) {
  const auto errors = OnRanks(2, 2, [&](const EnginePtr& engine) {
    for (const char* draft : {"heads", "partial"}) {
      GenerateOptions options = Answer(1);
      options.draft = draft;
      EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                          [&] { SubmitTo(engine, Prompt(1, 50), options, kDense); }),
                  HasSubstr("needs the whole model on one rank, and 2 ranks share its weights"));
    }
  });
  EXPECT_THAT(errors, testing::Each(""));
  for (const std::string& error : OnRanks(3, 2, [](const EnginePtr&) {})) {
    EXPECT_THAT(error, HasSubstr("3 ranks cannot share the weights in groups of 2"));
  }
}

TEST(TensorParallel, ARankThatFailsEndsAll) {
  const auto ask = [](const EnginePtr& engine) {
    Session session = SessionOf(*engine, kDense);
    session.Generate(Prompt(1, 100), Greedy(3));
    session.Generate(Prompt(2, 100), Greedy(3));  // the others forget the first text
  };
  const auto errors = OnRanks(4, 4, ask, [](int rank) {
    if (rank == 2) Throw(ErrorKind::kIo, "its disk is full");
  });
  for (const int rank : {0, 1, 3}) EXPECT_EQ(errors[rank], "rank 2 has ended: its disk is full");
}

}  // namespace
}  // namespace godwit::tensor_parallel_test
