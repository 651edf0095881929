// Draft tokens by an EAGLE-3 head. Requests keep every promise, and the head is loaded for those
// alone that ask for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "checkpoint/model_folder.h"
#include "dist/local.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"
#include "engine/predicting_engine_test_support.h"
#include "model/eagle3_folder.h"
#include "model/loader.h"
#include "tests/eagle3_model.h"

namespace godwit::eagle3_test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kGoldens = GODWIT_SOURCE_DIR "/tests/golden";

class Eagle3Engine : public PredictingEngine, public testing::WithParamInterface<std::string> {
 protected:
  Eagle3Engine() {
    WriteModelByLastToken(kGoldens / GetParam(), folder_, /*predicts=*/false);
    WriteEagle3Head(folder_, head_, /*agrees=*/true);
  }

  std::unique_ptr<Engine::Impl> Timed(int64_t kv_memory_bytes = 0) const {
    const ModelFolder folder(folder_.string());
    ThreadPool pool(1);
    auto decoder = LoadDecoder(folder.spec(), folder.weights(), pool, {});
    decoder->Take(Eagle3Folder(head_, folder.spec()).Load(pool, std::nullopt));
    return TimedBy(std::move(decoder), kv_memory_bytes);
  }
  Engine Drafting(LoadOptions options = {}) const {
    options.eagle3 = head_.string();
    return Plain(options);
  }

  fs::path head_ = temp_.path() / "head";
};
INSTANTIATE_TEST_SUITE_P(Models, Eagle3Engine,
                         testing::Values("llama/gqa", "gpt_oss/new_config", "qwen3_next/experts"),
                         [](const auto& test) { return TestName(test.param); });

TEST_P(Eagle3Engine, FewerStepsMakeTheSameText) { ExpectFewerSteps(*Timed(), "eagle3"); }

TEST_P(Eagle3Engine, TurnsAndForksGoOnFromTheSameText) {
  ExpectTurnsAndForksToGoOn(*Timed(), "eagle3");
}

TEST_P(Eagle3Engine, ManyRequestsHaveTheTextsOfEachAlone) {
  ExpectTextsOfEachAlone(Timed(), "eagle3");
}

// Saved texts hold the head's keys, so that engines without it, or with another, read theirs anew.
TEST_P(Eagle3Engine, GoesOnFromSavedTexts) {
  const Tokens prompt = SmallPrompt(4, 200);
  const Answer alone = AnswerOf(Alone(prompt, GreedyWithLogprobs(30)));
  const auto saving = [&](const fs::path& head) {
    return Plain({.cache_dir = (temp_.path() / "cache").string(),
                  .cache_every_tokens = 64,
                  .eagle3 = head.string()});
  };
  const auto generate = [&](const fs::path& head, const char* draft) {
    return saving(head).NewSession({}).Generate(prompt, With(GreedyWithLogprobs(30), draft));
  };
  const auto first = generate(head_, "eagle3");
  EXPECT_EQ(AnswerOf(first), alone);
  const auto none = generate("", "");
  EXPECT_EQ(AnswerOf(none), alone);
  EXPECT_EQ(none.disk_tokens, 0);
  WriteEagle3Head(folder_, temp_.path() / "other", /*agrees=*/false);
  const auto other = generate(temp_.path() / "other", "eagle3");
  EXPECT_EQ(AnswerOf(other), alone);
  EXPECT_EQ(other.disk_tokens, 0);
  const auto second = generate(head_, "eagle3");
  EXPECT_EQ(AnswerOf(second), alone);
  EXPECT_GE(second.disk_tokens, 128);
}

TEST_P(Eagle3Engine, StandsBesideAPackedCopy) {
  const Tokens prompt = SmallPrompt(5, 70);
  const Answer alone = AnswerOf(Alone(prompt, GreedyWithLogprobs(20)));
  const std::string copy = (temp_.path() / "copy.godwit").string();
  for (const bool make : {true, false}) {
    const Engine engine = Drafting({.packed = copy, .pack = make});
    EXPECT_EQ(engine.weight_bytes(), Drafting().weight_bytes());
    const auto drafted =
        engine.NewSession({}).Generate(prompt, With(GreedyWithLogprobs(20), "eagle3"));
    EXPECT_EQ(AnswerOf(drafted), alone);
    EXPECT_TRUE(drafted.drafts);
  }
}

// The head takes memory for its weights and, in every text, for its keys.
TEST_P(Eagle3Engine, CountsItsMemory) {
  const Engine without = Plain(), with = Drafting();
  const ModelFolder folder(folder_.string());
  EXPECT_EQ(with.weight_bytes() - without.weight_bytes(),
            Eagle3Folder(head_, folder.spec()).LoadedBytes(std::nullopt));
  EXPECT_GT(with.KvBytes(2048, {}), without.KvBytes(2048, {}));
}

std::string ErrorOfLoading(const fs::path& folder, const fs::path& head, ErrorKind kind,
                           bool mtp = false) {
  return ErrorOf(
      kind, [&] { Engine(folder.string(), {.threads = 1, .mtp = mtp, .eagle3 = head.string()}); });
}

TEST(Eagle3Refusals, AnotherModel) {
  EXPECT_THAT(ErrorOfLoading(kTiny, kGoldens / "eagle3" / "llama", ErrorKind::kInput),
              HasSubstr("as the model has it, found 32"));
  EXPECT_THAT(ErrorOfLoading(kTiny, "no such folder", ErrorKind::kIo), HasSubstr("no such folder"));
}

TEST(Eagle3Refusals, MtpBesideIt) {
  TempFolder temp;
  const fs::path model = temp.path() / "model", head = temp.path() / "head";
  WriteAgreeingModel({"qwen3_next", "experts"}, model);
  WriteEagle3Head(model, head, /*agrees=*/true);
  EXPECT_THAT(ErrorOfLoading(model, head, ErrorKind::kUnsupported, /*mtp=*/true),
              HasSubstr("\"mtp\" and \"eagle3\" cannot be used together"));
}

TEST(Eagle3Refusals, RequestsWithoutTheHeadOrWithAnother) {
  TempFolder temp;
  const fs::path model = temp.path() / "model", head = temp.path() / "head";
  WriteModelByLastToken(kGoldens / "llama/gqa", model, /*predicts=*/false);
  WriteEagle3Head(model, head, /*agrees=*/true);
  const auto generate = [&](const std::string& loaded, const std::string& draft) {
    const Engine engine(model.string(), {.threads = 1, .eagle3 = loaded});
    return engine.NewSession({}).Generate(SmallPrompt(1, 3), With(Greedy(3), draft));
  };
  const Error error = ErrorOf([&] { generate("", "eagle3"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_EQ(error.data().code, ErrorCode::kNoEagle3);
  EXPECT_THAT(error.what(), HasSubstr("none was loaded with the model"));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { generate(head.string(), "eagle3:elsewhere"); }),
              HasSubstr("names another folder"));
  EXPECT_TRUE(generate(head.string(), "eagle3:" + head.string()).drafts);
}

TEST(Eagle3Refusals, Ranks) {
  LocalWorld world(2);
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      errors[rank] = ErrorOf(ErrorKind::kUnsupported, [&] {
        Engine::Impl(kTiny, {.threads = 1, .eagle3 = "head"}, world.Rank(rank));
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("\"eagle3\" needs the whole model and the whole text on one rank, "
                                 "and there are 2 ranks"));
  }
}

}  // namespace
}  // namespace godwit::eagle3_test
