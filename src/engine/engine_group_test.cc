// Engines beside each other, with the memory of one.

#include "engine/engine_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "engine/engine_test_support.h"

namespace godwit::engine_group_test {
namespace {

using testing::HasSubstr;

// Another model: its weights, heads and vocabulary are not those of kTiny.
const std::string kOther = GODWIT_SOURCE_DIR "/tests/golden/falcon/new_config";

Tokens OfVocabulary(const Engine& engine, Tokens prompt) {
  for (int32_t& token : prompt) token %= static_cast<int32_t>(engine.vocab_size());
  return prompt;
}

// Two engines of different models, and each model alone.
class EngineGroupTest : public testing::Test {
 protected:
  EngineGroupTest() {
    for (const std::string& folder : {kTiny, kOther}) {
      alone_.emplace_back(folder, LoadOptions{.threads = 1});
    }
  }

  void Load(int64_t kv_memory_bytes = 0, const std::string& cache_dir = "") {
    group_ = std::make_shared<EngineGroup>(
        LoadOptions{.threads = 2, .kv_memory_bytes = kv_memory_bytes});
    engines_.clear();
    for (const std::string& folder : {kTiny, kOther}) {
      engines_.emplace_back(
          folder, LoadOptions{.cache_dir = cache_dir, .step_tokens = 64, .group = group_});
    }
  }
  Tokens Asked(size_t model, int i, int64_t length) const {
    return OfVocabulary(alone_[model], Prompt(i, length));
  }
  Tokens Alone(size_t model, int i, int64_t length, int64_t max_tokens) const {
    return alone_[model]
        .NewSession({})
        .Generate(Asked(model, i, length), Greedy(max_tokens))
        .tokens;
  }

  std::vector<Engine> alone_;
  std::shared_ptr<EngineGroup> group_;
  std::vector<Engine> engines_;
};

TEST_F(EngineGroupTest, EachHasTheTokensOfItselfAlone) {
  Load();
  EXPECT_EQ(engines_[0].threads(), 2);
  EXPECT_EQ(engines_[0].kv_memory_bytes(), engines_[1].kv_memory_bytes());
  std::vector<Generation> generations;
  for (int i = 0; i < 12; ++i) {
    generations.push_back(engines_[i % 2].Submit(Asked(i % 2, i, 10 + 20 * i), Greedy(20)));
  }
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(generations[i].Wait().tokens, Alone(i % 2, i, 10 + 20 * i, 20)) << i;
  }
}

// The memory holds the longest text of either engine alone. Requests of both wait for each other.
TEST_F(EngineGroupTest, AllFinishThoughMemoryIsShort) {
  const int64_t enough = std::max(alone_[0].KvBytes(200, {}), alone_[1].KvBytes(200, {}));
  Load(enough);
  for (int round = 0; round < 2; ++round) {  // in the second, texts of the first are in the way
    std::vector<Generation> generations;
    for (int i = 0; i < 8; ++i) {
      generations.push_back(engines_[i % 2].Submit(Asked(i % 2, i + 8 * round, 40), Greedy(150)));
    }
    int64_t pauses = 0;
    for (int i = 0; i < 8; ++i) {
      const GenerateResult result = generations[i].Wait();
      EXPECT_EQ(result.tokens, Alone(i % 2, i + 8 * round, 40, 150)) << round << i;
      pauses += result.pauses;
      if (i == 0) {
        EXPECT_EQ(result.pauses, 0) << "the oldest always goes on";
      }
    }
    EXPECT_GT(pauses, 0);
  }
}

TEST_F(EngineGroupTest, TextsOfOneGiveWayToTheOther) {
  const int64_t enough = std::max(alone_[0].KvBytes(200, {}), alone_[1].KvBytes(200, {}));
  Load(enough);
  const int64_t one = enough / alone_[0].KvBytes(64, {}) * 64;
  engines_[0].Submit(Asked(0, 1, one - 8), Greedy(4)).Wait();
  EXPECT_GT(group_->used_kv_bytes(), enough / 2) << "the ended text stays";
  EXPECT_EQ(engines_[1].Submit(Asked(1, 2, 150), Greedy(20)).Wait().tokens, Alone(1, 2, 150, 20));
}

// A text that a session holds stays. A request that it leaves no room is refused.
TEST_F(EngineGroupTest, SessionsKeepTheirMemory) {
  const int64_t enough = std::max(alone_[0].KvBytes(200, {}), alone_[1].KvBytes(200, {}));
  Load(enough);
  const int64_t one = enough / alone_[0].KvBytes(64, {}) * 64;
  std::optional<Session> session = engines_[0].NewSession({});
  session->Generate(Asked(0, 1, one - 8), Greedy(4));
  EXPECT_THAT(
      ErrorOf(ErrorKind::kMemory, [&] { engines_[1].Submit(Asked(1, 2, 180), Greedy(8)).Wait(); }),
      HasSubstr("needs another"));
  session.reset();
  EXPECT_EQ(engines_[1].Submit(Asked(1, 2, 180), Greedy(8)).Wait().tokens, Alone(1, 2, 180, 8));
}

TEST_F(EngineGroupTest, TextsAreForgottenUnlessTheyAreKept) {
  Load(1 << 24);
  engines_[0].Submit(Asked(0, 1, 100), Greedy(4)).Wait();
  GenerateOptions kept = Greedy(4);
  kept.keep_as = "kept";
  engines_[1].Submit(Asked(1, 2, 100), kept).Wait();
  group_->ForgetTexts();
  EXPECT_EQ(group_->used_kv_bytes(), alone_[1].KvBytes(103, {}));
  EXPECT_GE(engines_[1].Submit(Asked(1, 2, 100), Greedy(4)).Wait().cached_tokens, 64);
  EXPECT_EQ(engines_[0].Submit(Asked(0, 1, 100), Greedy(4)).Wait().cached_tokens, 0);
}

TEST_F(EngineGroupTest, AnEngineThatGoesGivesItsMemoryBack) {
  Load(1 << 24);
  engines_[1].Submit(Asked(1, 2, 100), Greedy(4)).Wait();
  std::optional<Generation> running = engines_[1].Submit(Asked(1, 3, 100), Greedy(1000));
  auto other = engines_[0].Submit(Asked(0, 1, 100), Greedy(200));
  running.reset();
  engines_.pop_back();
  EXPECT_EQ(other.Wait().tokens, Alone(0, 1, 100, 200));
  EXPECT_LE(group_->used_kv_bytes(), alone_[0].KvBytes(300, {}));
  // The model may come back.
  engines_.emplace_back(kOther, LoadOptions{.group = group_});
  EXPECT_EQ(engines_[1].Submit(Asked(1, 2, 100), Greedy(4)).Wait().tokens, Alone(1, 2, 100, 4));
}

TEST_F(EngineGroupTest, SavedTextsOutliveTheirEngine) {
  const TempFolder folder;
  Load(1 << 24, folder.path());
  engines_[0].Submit(Asked(0, 1, 200), Greedy(4)).Wait();
  engines_[1].Submit(Asked(1, 1, 200), Greedy(4)).Wait();
  Load(1 << 24, folder.path());
  for (size_t i = 0; i < 2; ++i) {
    const GenerateResult result = engines_[i].Submit(Asked(i, 1, 200), Greedy(4)).Wait();
    EXPECT_GE(result.disk_tokens, 128) << i;
    EXPECT_EQ(result.tokens, Alone(i, 1, 200, 4)) << i;
  }
}

TEST_F(EngineGroupTest, RanksAreRefused) {
  Load();
  EXPECT_THAT(
      ErrorOf(ErrorKind::kUnsupported, [&] { Engine(kTiny, {.mpi = true, .group = group_}); }),
      HasSubstr("among ranks"));
}

TEST(StepTurnsTest, OneAtATimeInTheOrderOfAsking) {
  StepTurns turns;
  std::atomic<int> inside = 0;
  std::vector<std::thread> threads;
  std::vector<int> order;
  {
    const StepTurns::Turn first(turns);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const StepTurns::Turn turn(turns);
        EXPECT_EQ(++inside, 1);
        order.push_back(i);
        --inside;
      });
      while (turns.waiting() <= i) std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace godwit::engine_group_test
