// Draft tokens by the layer that comes with a model. Requests keep every promise, and the layer is
// loaded for those alone that ask for it.

#include <fmt/format.h>
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
#include "model/loader.h"
#include "tests/mtp_model.h"

namespace godwit::mtp_test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class MtpEngine : public PredictingEngine, public testing::WithParamInterface<MtpGolden> {
 protected:
  MtpEngine() { WriteAgreeingModel(GetParam(), folder_); }

  std::unique_ptr<Engine::Impl> Timed(int64_t kv_memory_bytes = 0) const {
    ModelFolder folder(folder_.string());
    folder.RequestPrediction();
    ThreadPool pool(1);
    auto decoder = LoadDecoder(folder.spec(), folder.weights(), pool, {});
    return TimedBy(std::move(decoder), kv_memory_bytes);
  }
};
INSTANTIATE_TEST_SUITE_P(Families, MtpEngine, testing::ValuesIn(MtpGoldens()),
                         [](const auto& test) { return test.param.family; });

TEST_P(MtpEngine, FewerStepsMakeTheSameText) { ExpectFewerSteps(*Timed(), "mtp"); }

TEST_P(MtpEngine, TurnsAndForksGoOnFromTheSameText) { ExpectTurnsAndForksToGoOn(*Timed(), "mtp"); }

TEST_P(MtpEngine, ManyRequestsHaveTheTextsOfEachAlone) { ExpectTextsOfEachAlone(Timed(), "mtp"); }

// Where memory is short, there are fewer draft tokens, and the text goes on.
TEST_P(MtpEngine, TextContinuesWithoutMemoryForDrafts) {
  const auto unlimited = Timed();
  Session alone = SessionOf(*unlimited);
  const Tokens prompt = SmallPrompt(3, 100);
  const auto plain = alone.Generate(prompt, Greedy(150));
  const auto engine = Timed(Plain({.mtp = true}).KvBytes(250, {}));
  Session tight = SessionOf(*engine);
  const auto drafted = tight.Generate(prompt, With(Greedy(150), "mtp"));
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_EQ(drafted.pauses, 0);
  EXPECT_GT(drafted.drafts->accepted, 10);
}

// Saved texts hold the layer's keys, so that engines without the layer read theirs anew.
TEST_P(MtpEngine, GoesOnFromSavedTexts) {
  const Tokens prompt = SmallPrompt(4, 200);
  const Answer alone = AnswerOf(Alone(prompt, GreedyWithLogprobs(30)));
  const auto saving = [&](bool mtp) {
    return Plain(
        {.cache_dir = (temp_.path() / "cache").string(), .cache_every_tokens = 64, .mtp = mtp});
  };
  const auto first =
      saving(true).NewSession({}).Generate(prompt, With(GreedyWithLogprobs(30), "mtp"));
  EXPECT_EQ(AnswerOf(first), alone);
  const auto other = saving(false).NewSession({}).Generate(prompt, GreedyWithLogprobs(30));
  EXPECT_EQ(AnswerOf(other), alone);
  EXPECT_EQ(other.disk_tokens, 0);
  const auto second =
      saving(true).NewSession({}).Generate(prompt, With(GreedyWithLogprobs(30), "mtp"));
  EXPECT_EQ(AnswerOf(second), alone);
  EXPECT_GE(second.disk_tokens, 128);
}

// A packed copy holds the model without the layer, which is packed beside it.
TEST_P(MtpEngine, StandsBesideAPackedCopy) {
  const Tokens prompt = SmallPrompt(5, 70);
  const Answer alone = AnswerOf(Alone(prompt, GreedyWithLogprobs(20)));
  const std::string copy = (temp_.path() / "copy.godwit").string();
  for (const bool make : {true, false}) {
    const Engine engine = Plain({.packed = copy, .pack = make, .mtp = true});
    EXPECT_EQ(engine.weight_bytes(), Plain({.mtp = true}).weight_bytes());
    const auto drafted =
        engine.NewSession({}).Generate(prompt, With(GreedyWithLogprobs(20), "mtp"));
    EXPECT_EQ(AnswerOf(drafted), alone);
    EXPECT_TRUE(drafted.drafts);
  }
  EXPECT_TRUE(fs::exists(copy));
  EXPECT_EQ(
      AnswerOf(Plain({.packed = copy}).NewSession({}).Generate(prompt, GreedyWithLogprobs(20))),
      alone);
}

// The layer takes memory for its weights and, in every text, for its keys.
TEST_P(MtpEngine, CountsItsMemory) {
  const Engine without = Plain(), with = Plain({.mtp = true});
  EXPECT_GT(with.weight_bytes(), without.weight_bytes());
  ModelFolder folder(folder_.string());
  folder.RequestPrediction();
  ThreadPool pool(1);
  const auto decoder = LoadDecoder(folder.spec(), folder.weights(), pool, {});
  EXPECT_EQ(with.weight_bytes() - without.weight_bytes(), decoder->prediction_bytes());
  EXPECT_EQ(LoadedBytes(folder.tensors(), std::nullopt), decoder->weight_bytes());
  const int64_t layers = AttentionLayers(decoder->spec());
  const auto keys = [](const Engine& engine) {
    return engine.KvBytes(2048, {}) - engine.KvBytes(1024, {});  // states are the same
  };
  EXPECT_EQ(keys(with) * layers, keys(without) * (layers + 1));
}

std::string ErrorOfLoading(const fs::path& folder, bool mtp = true) {
  return ErrorOf(ErrorKind::kUnsupported,
                 [&] { Engine(folder.string(), {.threads = 1, .mtp = mtp}); });
}

TEST(MtpRefusals, NameWhatIsMissing) {
  EXPECT_THAT(ErrorOfLoading(kTiny),
              HasSubstr("this llama model has no layer that predicts tokens: expected "
                        "num_nextn_predict_layers or mtp_num_hidden_layers of 1 in its "
                        "config.json"));
  const fs::path goldens = GODWIT_SOURCE_DIR "/tests/golden";
  EXPECT_THAT(ErrorOfLoading(goldens / "qwen3_next" / "experts"),
              HasSubstr("experts has no layer that predicts tokens: expected the tensor "
                        "mtp.fc.weight, found none"));
  EXPECT_THAT(ErrorOfLoading(goldens / "glm4_moe" / "air"),
              HasSubstr("expected the tensor model.layers.3.eh_proj.weight, found none"));
  EXPECT_THAT(ErrorOfLoading(goldens / "gguf" / "glm4moe.gguf"),
              HasSubstr("expected the tensor model.layers.2.eh_proj.weight, found none"));
  EXPECT_THAT(ErrorOfLoading(goldens / "gguf" / "deepseek_v3.gguf"),
              HasSubstr("this deepseek_v3 model has no layer that predicts tokens"));
}

// The layer comes with a GGUF file, too.
TEST(MtpOfGguf, TheTextIsTheSame) {
  for (const char* family : {"glm4_moe", "qwen3_next"}) {
    const std::string file = fmt::format("{}/tests/golden/mtp/{}.gguf", GODWIT_SOURCE_DIR, family);
    const Engine without(file, {.threads = 2}), with(file, {.threads = 2, .mtp = true});
    EXPECT_GT(with.weight_bytes(), without.weight_bytes()) << family;
    const Tokens prompt = SmallPrompt(1, 70);
    const auto expected = without.NewSession({}).Generate(prompt, Greedy(40));
    const auto found = with.NewSession({}).Generate(prompt, With(Greedy(40), "mtp"));
    EXPECT_EQ(found.tokens, expected.tokens) << family;
    EXPECT_EQ(found.drafts->sources.back().name, "mtp") << family;
  }
}

TEST(MtpRefusals, AnEngineWithoutTheLayer) {
  TempFolder temp;
  WriteAgreeingModel(MtpGoldens().front(), temp.path() / "model");
  const auto generate = [](const Engine& engine) {
    engine.NewSession({}).Generate(SmallPrompt(1, 3), With(Greedy(3), "mtp"));
  };
  const Error error =
      ErrorOf([&] { generate(Engine((temp.path() / "model").string(), {.threads = 1})); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_EQ(error.data().code, ErrorCode::kNoPrediction);
  EXPECT_THAT(error.what(), HasSubstr("which was not loaded with the model"));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { generate(Engine(kTiny, {.threads = 1})); }),
              HasSubstr("this llama model has no layer that predicts tokens"));
}

TEST(MtpRefusals, Ranks) {
  TempFolder temp;
  WriteAgreeingModel(MtpGoldens().front(), temp.path() / "model");
  LocalWorld world(2);
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      errors[rank] = ErrorOf(ErrorKind::kUnsupported, [&] {
        Engine::Impl((temp.path() / "model").string(), {.threads = 1, .mtp = true},
                     world.Rank(rank));
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("needs the whole model and the whole text on one rank, and there "
                                 "are 2 ranks"));
  }
}

}  // namespace
}  // namespace godwit::mtp_test
