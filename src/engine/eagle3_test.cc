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
#include "engine/generation_impl.h"
#include "model/eagle3_folder.h"
#include "model/loader.h"
#include "tests/eagle3_model.h"
#include "tests/session_of.h"
#include "tests/timed_model.h"

namespace godwit::eagle3_test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kGoldens = GODWIT_SOURCE_DIR "/tests/golden";

GenerateOptions With(GenerateOptions options, const std::string& draft) {
  options.draft = draft;
  return options;
}

// Prompts of tokens that these models have.
Tokens SmallPrompt(int i, int64_t length) {
  Tokens prompt;
  for (int64_t k = 0; k < length; ++k) {
    prompt.push_back(static_cast<int32_t>((k * k * 7 + 13 * i + k * i) % 51));
  }
  return prompt;
}

class Eagle3Engine : public testing::TestWithParam<std::string> {
 protected:
  Eagle3Engine() : folder_(temp_.path() / "model"), head_(temp_.path() / "head") {
    WriteModelByLastToken(kGoldens / GetParam(), folder_, /*predicts=*/false);
    WriteEagle3Head(folder_, head_, /*agrees=*/true);
  }

  std::unique_ptr<Engine::Impl> Timed(int64_t kv_memory_bytes = 0) const {
    const ModelFolder folder(folder_.string());
    ThreadPool pool(1);
    auto decoder = LoadDecoder(folder.spec(), folder.weights(), pool, {});
    decoder->Take(Eagle3Folder(head_, folder.spec()).Load(pool, std::nullopt));
    DecoderSpec spec = decoder->spec();
    return std::make_unique<Engine::Impl>(
        std::make_unique<TimedModel>(std::move(decoder)), std::move(spec), nullptr, SpecialTokens{},
        LoadOptions{.threads = 2, .kv_memory_bytes = kv_memory_bytes}, TimedModel::NowMs);
  }
  Engine Plain(LoadOptions options = {}) const {
    options.threads = 2;
    return Engine(folder_.string(), options);
  }
  Engine Drafting(LoadOptions options = {}) const {
    options.eagle3 = head_.string();
    return Plain(options);
  }
  GenerateResult Alone(const Tokens& prompt, const GenerateOptions& options,
                       const SessionOptions& session = {}) const {
    return Plain().NewSession(session).Generate(prompt, options);
  }

  TempFolder temp_;
  fs::path folder_, head_;
};
INSTANTIATE_TEST_SUITE_P(Models, Eagle3Engine,
                         testing::Values("llama/gqa", "gpt_oss/new_config", "qwen3_next/experts"),
                         [](const auto& test) { return TestName(test.param); });

TEST_P(Eagle3Engine, FewerStepsMakeTheSameText) {
  const auto engine = Timed();
  const Tokens prompt = SmallPrompt(1, 100);
  const auto plain = Alone(prompt, GreedyWithLogprobs(200));
  for (const char* draft : {"eagle3", "ngram,eagle3"}) {
    Session session = SessionOf(*engine);
    const auto drafted = session.Generate(prompt, With(GreedyWithLogprobs(200), draft));
    EXPECT_EQ(AnswerOf(drafted), AnswerOf(plain));
    EXPECT_GT(drafted.drafts->accepted, 80);
    EXPECT_LT(drafted.drafts->steps, 120);
    EXPECT_EQ(drafted.drafts->sources.back().name, "eagle3");
    EXPECT_GT(drafted.drafts->sources.back().accepted, 0);
  }
}

TEST_P(Eagle3Engine, TurnsAndForksGoOnFromTheSameText) {
  const auto engine = Timed();
  const Engine without = Plain();
  for (const char* kv : {"dense", "sinks:4+60"}) {
    Session plain = without.NewSession({.kv = kv}), drafted = SessionOf(*engine, {.kv = kv});
    Tokens text = SmallPrompt(2, 90);
    for (int turn = 0; turn < 3; ++turn) {
      const auto expected = plain.Generate(text, Greedy(50 + turn));
      Session fork = drafted.Fork();
      for (Session* session : {&fork, &drafted}) {
        const auto found = session->Generate(text, With(Greedy(50 + turn), "eagle3"));
        EXPECT_EQ(found.tokens, expected.tokens) << kv << turn;
        EXPECT_EQ(found.cached_tokens, expected.cached_tokens) << kv << turn;
        EXPECT_GT(found.drafts->accepted, 10) << kv << turn;
      }
      text.assign(drafted.tokens().begin(), drafted.tokens().end());
      text.resize(text.size() - 5);  // a part of the answer is taken back
      text.insert(text.end(), {5, 6, 7});
    }
  }
}

// Some requests sample their tokens. Others beside them are cancelled, or draft otherwise.
TEST_P(Eagle3Engine, ManyRequestsHaveTheTextsOfEachAlone) {
  const auto engine = std::shared_ptr<const Engine::Impl>(Timed());
  const auto prompt = [](int i) { return SmallPrompt(i % 4, 100 + i % 3); };
  const auto options = [](int i) {
    GenerateOptions options = Greedy(40 + i);
    if (i % 3 == 0) options.sampler = {.temperature = 1, .seed = static_cast<uint64_t>(i)};
    constexpr const char* kDrafts[] = {"eagle3", "ngram,eagle3", "eagle3", ""};
    return With(options, kDrafts[i % 4]);
  };
  std::vector<Generation> generations;
  for (int i = 0; i < 16; ++i) {
    generations.push_back(SubmitTo(engine, prompt(i), options(i), {}));
  }
  for (int i = 1; i < 16; i += 4) {
    Generation& given_up = generations[i];
    for (int events = i; events > 0 && !given_up.Next().done;) --events;
    given_up.Cancel();
  }
  int64_t accepted = 0;
  const Engine without = Plain();
  for (int i = 0; i < 16; ++i) {
    const auto result = generations[i].Wait();
    Tokens alone = without.NewSession({}).Generate(prompt(i), With(options(i), "")).tokens;
    if (i % 4 == 1) alone.resize(result.tokens.size());
    EXPECT_EQ(result.tokens, alone) << i;
    if (result.drafts) accepted += result.drafts->accepted;
  }
  EXPECT_GT(accepted, 50);
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
