// Engines of one process as ranks that share a context.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/test_support.h"
#include "dist/local.h"
#include "engine/generation_impl.h"
#include "engine/on_ranks_test_support.h"
#include "tests/session_of.h"

namespace godwit::ranks_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
const SessionOptions kStar = {.prefill = "star:block=40", .kv_type = "f32"};
const SessionOptions kRing = {.prefill = "ring:chunk=64", .kv_type = "f32"};
const SessionOptions kLargeStar = {.prefill = "star:block=64", .kv_type = "f32"};
const SessionOptions kStarOfBlocks = {
    .kv = "blocks:initial=0,local_windows_len=1,second_block_count=3",
    .prefill = "star:block=64",
    .kv_type = "f32"};

struct Outcome {
  GenerateResult result;  // the last, of rank 0
  Tokens text;            // the last that another rank forgot
  int texts = 0;
  std::string error;
};

// The outcomes of ask(engine), which rank 0 calls. kv_bytes(rank): its memory for KV caches.
// on_forgotten(rank) runs on the other ranks when a text goes.
std::vector<Outcome> OnRanks(
    int ranks, const std::function<void(std::shared_ptr<const Engine::Impl>, Outcome&)>& ask,
    const std::function<int64_t(int)>& kv_bytes = [](int) { return 0; },
    const std::function<void(int)>& on_forgotten = [](int) {}) {
  std::vector<Outcome> outcomes(ranks);
  const auto errors = godwit::OnRanks(
      ranks, [&](int rank) { return LoadOptions{.threads = 1, .kv_memory_bytes = kv_bytes(rank)}; },
      [&](const EnginePtr& engine) { ask(engine, outcomes[0]); },
      [&](int rank, std::span<const int32_t> text) {
        outcomes[rank].text.assign(text.begin(), text.end());
        ++outcomes[rank].texts;
        on_forgotten(rank);
      });
  for (int rank = 0; rank < ranks; ++rank) {
    if (!errors[rank].empty()) outcomes[rank].error = errors[rank];
  }
  return outcomes;
}

// Expects that all ranks have the answer of rank 0.
void ExpectSameTexts(const std::vector<Outcome>& outcomes, const Tokens& prompt) {
  Tokens text = prompt;
  const Tokens& answer = outcomes[0].result.tokens;
  text.insert(text.end(), answer.begin(), answer.end());
  for (const Outcome& one : outcomes) {
    ASSERT_EQ(one.error, "");
    if (&one != &outcomes[0]) {
      ASSERT_GE(one.text.size(), text.size());  // draft tokens behind the end are accepted, too
      EXPECT_EQ(Tokens(one.text.begin(), one.text.begin() + std::ssize(text)), text);
    }
  }
}

std::vector<Outcome> Generate(
    int ranks, const Tokens& prompt, const GenerateOptions& options,
    const SessionOptions& session = kStar,
    const std::function<int64_t(int)>& kv_bytes = [](int) { return 0; }) {
  const auto ask = [&](const std::shared_ptr<const Engine::Impl>& engine, Outcome& mine) {
    try {
      mine.result = SessionOf(*engine, session).Generate(prompt, options);
    } catch (const Error& error) {
      mine.error = error.what();
    }
  };
  return OnRanks(ranks, ask, kv_bytes);
}

TEST(Ranks, AnswerAsOneDoes) {
  const Tokens prompt = Prompt(1, 333);
  GenerateOptions options = Greedy(20, 30);
  options.top_logprobs = 0;
  // The text has two of the larger blocks. Two ranks read the first one together.
  for (const char* prefill : {"star:block=40", "star:block=160", "star:block=40,by-speed"}) {
    const SessionOptions star = {.prefill = prefill, .kv_type = "f32"};
    const GenerateResult alone =
        Engine(kTiny, {.threads = 1}).NewSession(star).Generate(prompt, options);
    for (const int ranks : {1, 2, 4}) {
      if (ranks == 4 && star.prefill == "star:block=160") continue;
      const auto outcomes = Generate(ranks, prompt, options, star);
      ExpectSameTexts(outcomes, prompt);
      ExpectNear(outcomes[0].result, alone, 1e-4);
    }
  }
}

// Only rank 0 has a clock. The others read its draft tokens.
TEST(Ranks, DraftTogether) {
  const Tokens prompt = Prompt(1, 333);
  for (const char* kv : {"dense", "blocks:block_size=64,second_block_count=40"}) {
    const SessionOptions session = {.kv = kv, .prefill = "star:block=64", .kv_type = "f32"};
    GenerateOptions options = Greedy(150, 30);
    options.top_logprobs = 0;
    const auto plain = Generate(3, prompt, options, session);
    options.draft = "ngram";
    const auto drafted = Generate(3, prompt, options, session);
    ExpectSameTexts(drafted, prompt);
    ExpectNear(drafted[0].result, plain[0].result, 0);
  }
}

TEST(Ranks, RefuseDraftsFromAPartialCache) {
  GenerateOptions options = Greedy(5, 30);
  options.draft = "partial";
  EXPECT_THAT(Generate(2, Prompt(1, 333), options)[0].error,
              HasSubstr("and 2 ranks share it: leave it out, or run one rank"));
}

// The context is read exactly, so the answers repeat those of dense attention.
TEST(Ranks, InARingAnswerAsDenseDoes) {
  GenerateOptions options = Greedy(20, 30);
  options.top_logprobs = 0;
  struct Case {
    int64_t tokens;
    const char* kv_type;
    double error;  // of the answer, because stored values are rounded
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
      const auto outcomes = Generate(ranks, prompt, options, ring);
      SCOPED_TRACE(fmt::format("{} ranks, {}", ranks, one_case.kv_type));
      ExpectSameTexts(outcomes, prompt);
      ExpectNear(outcomes[0].result, alone, one_case.error);
    }
  }
}

// The chunk depends on the machine. The choice is never a star, because this text is too short for
// its blocks.
TEST(Ranks, ReadByTheSameAutomaticPrefill) {
  const auto outcomes =
      Generate(3, Prompt(4, 400), Greedy(8), {.prefill = "auto", .kv_type = "f32"});
  ExpectSameTexts(outcomes, Prompt(4, 400));
  EXPECT_THAT(outcomes[0].result.kv.policy, HasSubstr("dense, read by ring:chunk="));
  EXPECT_THAT(outcomes[0].result.kv.prefill, StartsWith("ring:chunk="));
}

// A reader that gives up ends its own text, on all ranks.
TEST(Ranks, CancelEndsOneText) {
  const auto outcomes =
      OnRanks(3, [&](const std::shared_ptr<const Engine::Impl>& engine, Outcome& mine) {
        Generation other = SubmitTo(engine, Prompt(1, 700), Greedy(20), kRing);
        Session session = SessionOf(*engine, kRing);
        GenerateOptions options = Greedy(20);
        options.on_progress = [](const PromptProgress& progress) {
          if (progress.done_tokens >= 300) Throw(ErrorKind::kInput, "enough");
        };
        EXPECT_EQ(ErrorOf([&] { session.Generate(Prompt(2, 990), options); }).what(),
                  std::string("enough"));
        options.on_progress = nullptr;
        EXPECT_EQ(std::ssize(session.Generate(Prompt(2, 990), options).tokens), 20);
        mine.result = other.Wait();
      });
  for (const Outcome& one : outcomes) EXPECT_EQ(one.error, "");
  EXPECT_EQ(
      outcomes[0].result.tokens,
      Engine(kTiny, {.threads = 1}).NewSession(kRing).Generate(Prompt(1, 700), Greedy(20)).tokens);
  EXPECT_EQ(outcomes[2].texts, 3);
}

// The draws of other ranks do not matter.
TEST(Ranks, TheFirstChooses) {
  GenerateOptions options = Greedy(20, 5);
  options.sampler = {.temperature = 5, .seed = 3};
  const auto outcomes = Generate(2, Prompt(2, 200), options);
  EXPECT_EQ(outcomes[0].error, "");
  EXPECT_EQ(std::ssize(outcomes[0].result.tokens), 20);
  ExpectSameTexts(outcomes, Prompt(2, 200));
}

// Ranks hold four of the 15 blocks each, the last rank three, with the anchor and the question, and
// not a page more.
TEST(Ranks, AContextFitsThatFitsOnAllTogether) {
  const Engine engine(kTiny, {.threads = 1});
  const Tokens prompt = Prompt(1, 15 * 64 + 10);
  const GenerateOptions options = Greedy(20, 10);
  const auto bytes = [&](int64_t pages) { return engine.KvBytes(pages * 64, kLargeStar); };
  const auto ample = Generate(4, prompt, options, kLargeStar, [&](int) { return bytes(6); });
  ExpectSameTexts(ample, prompt);
  EXPECT_EQ(ample[0].result.tokens, engine.NewSession(kLargeStar).Generate(prompt, options).tokens);
  const auto lacking =
      Generate(4, prompt, options, kLargeStar, [&](int rank) { return bytes(rank == 2 ? 5 : 6); });
  EXPECT_THAT(lacking[0].error, HasSubstr("the part of 970 tokens that rank 2 keeps takes "));
  EXPECT_THAT(lacking[0].error, HasSubstr(" for KV caches: use more ranks"));
  EXPECT_EQ(lacking[2].error, "");
}

// A budget for all blocks leaves no choice.
TEST(Ranks, EachChoosesAmongItsBlocks) {
  const Tokens prompt = Prompt(1, 15 * 64 + 10);
  GenerateOptions options = Greedy(20, 10);
  options.top_logprobs = 0;
  SessionOptions session = kLargeStar;
  const auto logprobs = [&](const std::string& kv) {
    session.kv = kv;
    const auto outcomes = Generate(3, prompt, options, session);
    ExpectSameTexts(outcomes, prompt);
    std::vector<float> all;
    for (const TokenLogprobs& token : outcomes[0].result.logprobs) all.push_back(token.logprob);
    return all;
  };
  const auto dense = logprobs("dense");
  EXPECT_EQ(logprobs("blocks:second_block_count=15"), dense);
  EXPECT_NE(logprobs(kStarOfBlocks.kv), dense);
}

// Signs of each rank's blocks take a page, and offsets of their tiles another.
TEST(Ranks, BlockIndexTakesMemory) {
  const Engine engine(kTiny, {.threads = 1});
  for (const int64_t pages : {7, 8}) {
    const auto outcomes = Generate(4, Prompt(1, 15 * 64 + 10), Greedy(20, 10), kStarOfBlocks,
                                   [&](int) { return engine.KvBytes(pages * 64, kLargeStar); });
    EXPECT_THAT(outcomes[0].error, HasSubstr(pages == 7 ? "rank 1 keeps takes" : ""));
    EXPECT_EQ(outcomes[0].error.empty(), pages == 8) << outcomes[0].error;
  }
}

TEST(Ranks, ContextsOfTooFewBlocksAreRefused) {
  EXPECT_THAT(Generate(2, Prompt(2, 41), Greedy(20))[0].error,
              HasSubstr("has 1 block of 40, too few for 2 ranks"));
}

// Requests run together, each as if alone.
TEST(Ranks, ServeManyRequests) {
  const std::vector<std::pair<Tokens, SessionOptions>> asked = {{Prompt(1, 333), kStar},
                                                                {Prompt(2, 700), kRing},
                                                                {Prompt(1, 333), kRing},
                                                                {Prompt(3, 99), kStar}};
  const Engine alone(kTiny, {.threads = 1});
  const auto outcomes = OnRanks(3, [&](const std::shared_ptr<const Engine::Impl>& engine,
                                       Outcome& mine) {
    std::vector<Generation> answers;
    for (const auto& [prompt, session] : asked) {
      answers.push_back(SubmitTo(engine, prompt, Greedy(20, 10), session));
    }
    for (size_t i = 0; i < asked.size(); ++i) {
      mine.result = answers[i].Wait();
      EXPECT_EQ(mine.result.tokens,
                alone.NewSession(asked[i].second).Generate(asked[i].first, Greedy(20, 10)).tokens);
    }
  });
  for (const Outcome& one : outcomes) EXPECT_EQ(one.error, "");
  EXPECT_EQ(outcomes[2].texts, 4);
}

// Answers share one prompt, which the ranks read once.
void ExpectASharedPrompt(const SessionOptions& session, int64_t question) {
  const Tokens prompt = Prompt(1, 15 * 64 + 10);
  GenerateOptions options = Greedy(20, question);
  options.sampler = {.temperature = 5, .seed = 3};
  std::vector<Tokens> read;  // read anew for each answer
  for (const uint64_t answer : {0, 1, 2}) {
    options.sequence = answer;
    read.push_back(Generate(3, prompt, options, session)[0].result.tokens);
  }
  EXPECT_NE(read[0], read[1]);
  const auto outcomes =
      OnRanks(3, [&](const std::shared_ptr<const Engine::Impl>& engine, Outcome&) {
        std::vector<Generation> answers;
        for (const uint64_t answer : {0, 1, 2}) {
          options.sequence = answer;
          answers.push_back(SubmitTo(engine, prompt, options, session));
        }
        for (const size_t answer : {0, 1, 2}) {
          const GenerateResult result = answers[answer].Wait();
          EXPECT_EQ(result.tokens, read[answer]) << session.prefill << " " << session.kv;
          EXPECT_EQ(result.cached_tokens, answer == 0 ? 0 : std::ssize(prompt) - 1);
        }
      });
  for (const Outcome& one : outcomes) EXPECT_EQ(one.error, "");
}

TEST(Ranks, AnswersShareTheirPrompt) {
  ExpectASharedPrompt(kRing, 10);
  ExpectASharedPrompt(kStarOfBlocks, 1);
}

TEST(Ranks, RELEASE_AnswersShareTheirPromptHoweverItIsRead) {
  ExpectASharedPrompt(kLargeStar, 1);
  ExpectASharedPrompt(kLargeStar, 10);
  ExpectASharedPrompt(kRing, 1);
  ExpectASharedPrompt(kStarOfBlocks, 10);
}

// Logits of the question. Ranks share the text before it.
TEST(Ranks, GiveLogits) {
  const Tokens text = Prompt(1, 700);
  const auto logits = [&](Session session) {
    std::vector<float> all;
    session.Logits(
        text,
        [&](int64_t, std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); },
        600);
    return all;
  };
  for (const char* prefill : {"star:block=64", "ring:chunk=64"}) {
    const SessionOptions session = {.prefill = prefill, .kv_type = "f32"};
    const auto alone = logits(Engine(kTiny, {.threads = 1}).NewSession(session));
    std::vector<float> shared;
    const auto outcomes =
        OnRanks(3, [&](const std::shared_ptr<const Engine::Impl>& engine, Outcome&) {
          for (int time = 0; time < 2; ++time) shared = logits(SessionOf(*engine, session));
        });
    for (const Outcome& one : outcomes) EXPECT_EQ(one.error, "");
    ASSERT_EQ(shared.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(shared[i], alone[i], 1e-4);
  }
}

// A request that fails ends only itself, wherever the failure occurs.
TEST(Ranks, ARequestThatFailsLetsTheOthersPass) {
  const Engine alone(kTiny, {.threads = 1});
  const Tokens prompt = Prompt(1, 10 * 64 + 10);
  const auto bytes = [&](int rank) { return alone.KvBytes((rank == 2 ? 5 : 16) * 64, kLargeStar); };
  const auto outcomes = OnRanks(
      4,
      [&](const std::shared_ptr<const Engine::Impl>& engine, Outcome&) {
        const auto error_of = [&](const Tokens& text, const GenerateOptions& options) {
          return ErrorOf([&] { SubmitTo(engine, text, options, kLargeStar).Wait(); });
        };
        const auto expect_answer = [&] {
          EXPECT_EQ(SubmitTo(engine, prompt, Greedy(20, 10), kLargeStar).Wait().tokens,
                    alone.NewSession(kLargeStar).Generate(prompt, Greedy(20, 10)).tokens);
        };
        GenerateOptions nonsense = Greedy(20, 10);
        nonsense.top_logprobs = -7;
        EXPECT_EQ(error_of({}, Greedy(20, 10)).kind(), ErrorKind::kInput);
        EXPECT_EQ(error_of(prompt, nonsense).kind(), ErrorKind::kInput);
        EXPECT_EQ(error_of(Prompt(1, 20), Greedy(20, 10)).kind(), ErrorKind::kInput);
        EXPECT_EQ(error_of(Prompt(1, 1 << 20), Greedy(20, 10)).kind(), ErrorKind::kInput);
        expect_answer();
        // The prompt is too long for rank 2, and so becomes an answer.
        const Error prompt_error = error_of(Prompt(1, 15 * 64 + 10), Greedy(20, 10));
        EXPECT_EQ(prompt_error.kind(), ErrorKind::kMemory);
        EXPECT_THAT(prompt_error.what(), HasSubstr("tokens that rank 2 keeps takes "));
        expect_answer();
        for (const char* draft : {"", "ngram"}) {
          GenerateOptions longer = Greedy(200, 10);
          longer.draft = draft;
          const Error answer_error = error_of(prompt, longer);
          EXPECT_EQ(answer_error.kind(), ErrorKind::kMemory);
          EXPECT_THAT(answer_error.what(), HasSubstr("rank 2: "));
          expect_answer();
        }
        EXPECT_FALSE(engine->served.placement.all->left());
      },
      bytes);
  for (const Outcome& one : outcomes) EXPECT_EQ(one.error, "");
}

// Waiting requests also learn what ended the work. Rank 1 fails when a text goes, within the
// others.
TEST(Ranks, RankThatFailsDuringAStepEndsAll) {
  const auto ask = [](const std::shared_ptr<const Engine::Impl>& engine, Outcome& mine) {
    std::vector<Generation> answers;
    for (int i = 0; i < 3; ++i) {
      answers.push_back(SubmitTo(engine, Prompt(i, 200), Greedy(250), kStar));
    }
    SessionOf(*engine, kStar).Generate(Prompt(5, 200), Greedy(2));
    for (Generation& answer : answers) {
      mine.error = ErrorOf(ErrorKind::kIo, [&] { answer.Wait(); });
      EXPECT_EQ(mine.error, "rank 1 has ended: its disk is full");
    }
    EXPECT_TRUE(engine->served.placement.all->left());
    EXPECT_EQ(
        ErrorOf(ErrorKind::kIo, [&] { SubmitTo(engine, Prompt(5, 200), Greedy(2), kStar).Wait(); }),
        mine.error);
  };
  const auto outcomes = OnRanks(
      3, ask, [](int) { return 0; },
      [](int rank) {
        if (rank == 1) Throw(ErrorKind::kIo, "its disk is full");
      });
  EXPECT_EQ(outcomes[1].error, "its disk is full");
  EXPECT_EQ(outcomes[2].error, outcomes[0].error);
}

// A short answer does not wait for a long one, which cannot end before its events are read.
TEST(Ranks, TextsRunTogether) {
  const auto outcomes =
      OnRanks(2, [&](const std::shared_ptr<const Engine::Impl>& engine, Outcome&) {
        Generation longer = SubmitTo(engine, Prompt(1, 200), Greedy(400), kStar);
        SubmitTo(engine, Prompt(2, 300), Greedy(4), kStar).Wait();
        while (const auto event = longer.Next(0)) EXPECT_FALSE(event->done);
        EXPECT_EQ(std::ssize(longer.Wait().tokens), 400);
      });
  for (const Outcome& one : outcomes) EXPECT_EQ(one.error, "");
}

// Memory for four of six texts on rank 1. The newest wait, or are paused while answers grow.
TEST(Ranks, TextsWaitForMemory) {
  const Engine alone(kTiny, {.threads = 1});
  const auto bytes = [&](int rank) { return alone.KvBytes((rank == 1 ? 17 : 64) * 64, kRing); };
  const auto outcomes = OnRanks(
      2,
      [&](const std::shared_ptr<const Engine::Impl>& engine, Outcome&) {
        std::vector<Generation> answers;
        for (int i = 0; i < 6; ++i) {
          answers.push_back(SubmitTo(engine, Prompt(i, 300 + 50 * i), Greedy(150), kRing));
        }
        int64_t pauses = 0;
        for (int i = 0; i < 6; ++i) {
          const GenerateResult result = answers[i].Wait();
          pauses += result.pauses;
          EXPECT_EQ(result.tokens,
                    alone.NewSession(kRing).Generate(Prompt(i, 300 + 50 * i), Greedy(150)).tokens);
        }
        EXPECT_GT(pauses, 0);
      },
      bytes);
  for (const Outcome& one : outcomes) EXPECT_EQ(one.error, "");
}

// Texts that have ended stay in memory until a rank lacks it, be it another one than rank 0.
TEST(Ranks, EndedTextsMakeRoomOnEveryRank) {
  const Engine alone(kTiny, {.threads = 1});
  const auto bytes = [&](int rank) { return alone.KvBytes((rank == 1 ? 6 : 64) * 64, kRing); };
  const auto outcomes = OnRanks(
      2,
      [&](const std::shared_ptr<const Engine::Impl>& engine, Outcome&) {
        for (const int text : {1, 2, 1, 1, 3}) {
          const Tokens prompt = Prompt(text, 500);
          const GenerateResult result = SubmitTo(engine, prompt, Greedy(9), kRing).Wait();
          EXPECT_EQ(result.tokens, alone.NewSession(kRing).Generate(prompt, Greedy(9)).tokens);
        }
      },
      bytes);
  for (const Outcome& one : outcomes) EXPECT_EQ(one.error, "");
}

TEST(Ranks, RankZeroIsAskedAndTheOthersFollow) {
  LocalWorld world(2);
  const auto of = [&](int rank) {
    return std::make_shared<const Engine::Impl>(kTiny, LoadOptions{.threads = 1}, world.Rank(rank));
  };
  std::shared_ptr<const Engine::Impl> other;
  std::thread thread([&] { other = of(1); });
  const auto first = of(0);
  thread.join();
  ErrorOf(ErrorKind::kUnsupported, [&] { first->FollowRankZero(); });
  ErrorOf(ErrorKind::kUnsupported, [&] { SubmitTo(other, Prompt(1, 200), {}, kStar); });
  ErrorOf(ErrorKind::kUnsupported,
          [&] { SessionOf(*other, kStar).Generate(Prompt(1, 200), Greedy(20)); });
}

}  // namespace
}  // namespace godwit::ranks_test
