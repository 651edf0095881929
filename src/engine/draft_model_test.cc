// Draft tokens by a draft model. Requests keep every promise, whatever the draft model is.

#include "engine/draft_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/test_support.h"
#include "checkpoint/model_folder.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"
#include "engine/generation_impl.h"
#include "model/loader.h"
#include "tests/session_of.h"
#include "tests/timed_model.h"
#include "text/fake_tokenizer.h"

namespace godwit::draft_model_test {
namespace {

using testing::HasSubstr;

const std::string kGoldens = GODWIT_SOURCE_DIR "/tests/golden/";

GenerateOptions With(GenerateOptions options, const std::string& draft) {
  options.draft = draft;
  return options;
}

Tokens SmallPrompt(int i, int64_t length) {
  Tokens prompt;
  for (int64_t k = 0; k < length; ++k) {
    prompt.push_back(static_cast<int32_t>((k * k * 7 + 13 * i + k * i) % 51));
  }
  return prompt;
}

// A model that drafts for itself, in other storages of its weights, so that it is mostly right.
class DraftModelEngine : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int64_t kContext = 1000;  // more than the models were made for
  std::unique_ptr<Engine::Impl> Drafting(int64_t kv_memory_bytes = 0) const {
    const ModelFolder folder(kGoldens + GetParam());
    ThreadPool pool(1);
    auto decoder = LoadDecoder(folder.spec(), folder.weights(), pool, {});
    DecoderSpec spec = decoder->spec();
    spec.max_context = kContext;
    auto engine = std::make_unique<Engine::Impl>(
        std::make_unique<TimedModel>(std::move(decoder)), std::move(spec), nullptr, SpecialTokens{},
        LoadOptions{.threads = 2, .kv_memory_bytes = kv_memory_bytes}, TimedModel::NowMs);
    std::shared_ptr<const Decoder> draft =
        LoadDecoder(folder.spec(), folder.weights(), pool, {}, DType::kBF16);
    engine->Take(std::make_unique<const DraftModel>(draft, engine->served.spec,
                                                    draft->weight_types(), *engine->group));
    return engine;
  }
  static GenerateResult Alone(const Engine::Impl& engine, const Tokens& prompt,
                              const GenerateOptions& options) {
    return SessionOf(engine).Generate(prompt, options);
  }
};
INSTANTIATE_TEST_SUITE_P(Models, DraftModelEngine,
                         testing::Values("llama/gqa", "qwen3_next/experts"),
                         [](const auto& test) { return TestName(test.param); });

TEST_P(DraftModelEngine, FewerStepsMakeTheSameText) {
  const auto engine = Drafting();
  const Tokens prompt = SmallPrompt(1, 100);
  const auto expected = Alone(*engine, prompt, GreedyWithLogprobs(200));
  for (const char* draft : {"model", "ngram,model"}) {
    Session session = SessionOf(*engine);
    const auto drafted = session.Generate(prompt, With(GreedyWithLogprobs(200), draft));
    EXPECT_EQ(AnswerOf(drafted), AnswerOf(expected));
    EXPECT_LT(drafted.drafts->steps, 150);
    EXPECT_EQ(drafted.drafts->sources.back().name, "model");
    EXPECT_GT(drafted.drafts->sources.back().accepted, 20);
  }
}

// TriForce's levels: the draft model over few tokens, the model over a part, then over all.
TEST_P(DraftModelEngine, TwoLevelsMakeTheSameText) {
  const auto engine = Drafting();
  const Tokens prompt = SmallPrompt(1, 560);
  for (GenerateOptions options : {GreedyWithLogprobs(150), GreedyWithLogprobs(151)}) {
    if (options.max_tokens == 151) options.sampler = {.temperature = 1, .seed = 5};
    const auto expected = Alone(*engine, prompt, options);
    for (const char* draft :
         {"triforce:budget=256", "triforce:budget=256:inner=3:outer=6:small=128",
          "triforce:budget=256:gradual", "ngram,triforce:budget=256:block=16"}) {
      Session session = SessionOf(*engine);
      const auto drafted = session.Generate(prompt, With(options, draft));
      EXPECT_EQ(AnswerOf(drafted), AnswerOf(expected)) << draft;
      EXPECT_EQ(drafted.drafts->sources.back().name, "triforce");
      EXPECT_GT(drafted.drafts->sources.back().accepted, 0) << draft;
    }
  }
  Session session = SessionOf(*engine);
  const auto refused = [&](ErrorKind kind, const std::string& draft) {
    return ErrorOf(kind, [&] { session.Generate(prompt, With(Greedy(3), draft)); });
  };
  for (const char* items : {"inner=8", "outer=9", "small=64", "budget=255", "inner", "block=3"}) {
    EXPECT_THAT(refused(ErrorKind::kInput, std::string("triforce:") + items),
                HasSubstr(std::string("for example triforce:budget=4096:inner=2:outer=6), not \"") +
                          items));
  }
  Session sparse = SessionOf(*engine, {.kv = "sinks:4+60"});
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [&] { sparse.Generate(prompt, With(Greedy(3), "triforce")); }),
              HasSubstr("the draft source \"triforce\" works with the KV policy dense only"));
}

TEST_P(DraftModelEngine, TurnsAndForksGoOnFromTheSameText) {
  const auto engine = Drafting();
  for (const char* kv : {"dense", "sinks:4+60"}) {
    Session plain = SessionOf(*engine, {.kv = kv}), drafted = SessionOf(*engine, {.kv = kv});
    Tokens text = SmallPrompt(2, 90);
    for (int turn = 0; turn < 3; ++turn) {
      const auto expected = plain.Generate(text, Greedy(50 + turn));
      Session fork = drafted.Fork();
      for (Session* session : {&fork, &drafted}) {
        const auto found = session->Generate(text, With(Greedy(50 + turn), "model"));
        EXPECT_EQ(found.tokens, expected.tokens) << kv << turn;
        EXPECT_GT(found.drafts->accepted, 5) << kv << turn;
      }
      text.insert(text.end(), expected.tokens.begin(), expected.tokens.end());
      const Tokens more = SmallPrompt(3 + turn, 10);
      text.insert(text.end(), more.begin(), more.end());
    }
  }
}

std::shared_ptr<Request> Submit(Engine::Impl& engine, Tokens prompt,
                                const GenerateOptions& options) {
  auto request = engine.NewRequest(std::make_shared<TextPlan>(engine.served, SessionOptions()),
                                   std::move(prompt), options, std::make_shared<Interrupt>(),
                                   RequestKind::kSubmitted);
  engine.scheduler->Submit(request);
  return request;
}

GenerateResult WaitFor(Request& request) {
  while (!request.done()) request.Next(std::nullopt);
  return request.TakeResult();
}

TEST_P(DraftModelEngine, ManyRequestsHaveTheTextsOfEachAlone) {
  const auto engine = Drafting();
  std::vector<std::shared_ptr<Request>> requests;
  const auto options = [](int i) {
    GenerateOptions sampled = Greedy(60 + i);
    if (i % 2 == 1) sampled.sampler = {.temperature = 1, .min_p = 0.05f, .seed = 5};
    return sampled;
  };
  for (int i = 0; i < 6; ++i) {
    requests.push_back(Submit(*engine, SmallPrompt(i % 3, 40 + 30 * i), With(options(i), "model")));
  }
  int64_t accepted = 0;
  for (int i = 0; i < 6; ++i) {
    const GenerateResult result = WaitFor(*requests[i]);
    EXPECT_EQ(result.tokens, Alone(*engine, SmallPrompt(i % 3, 40 + 30 * i), options(i)).tokens)
        << i;
    accepted += result.drafts->accepted;
  }
  EXPECT_GT(accepted, 50);
}

// Memory for one text alone: the draft model's texts make way, and no request fails or waits for
// them.
TEST_P(DraftModelEngine, TextsOfDraftsMakeWay) {
  constexpr int64_t kPrompt = 120, kOutput = 100;
  const Tokens prompt = SmallPrompt(1, kPrompt);
  const auto roomy = Drafting();
  const auto expected = Alone(*roomy, prompt, Greedy(kOutput));
  const int64_t needed = TextPlan(roomy->served, {}).KvBytes(kPrompt + kOutput + kTileTokens);
  const auto engine = Drafting(needed);
  for (int i = 0; i < 3; ++i) {
    const GenerateResult result = WaitFor(
        *Submit(*engine, SmallPrompt(i == 1 ? 2 : 1, kPrompt), With(Greedy(kOutput), "model")));
    EXPECT_EQ(result.pauses, 0);
    if (i != 1) {
      EXPECT_EQ(result.tokens, expected.tokens);
    }
  }
}

TEST(DraftModel, NeedsTheSameTokens) {
  class Respelled : public FakeTokenizer {
   public:
    std::optional<std::string> IdToToken(int32_t id) const override {
      return id == 'x' ? "\"y\"" : FakeTokenizer::IdToToken(id);
    }
  };
  RequireSameTokens(FakeTokenizer(), "big", FakeTokenizer(), "small");
  EXPECT_EQ(ErrorOf(ErrorKind::kInput,
                    [] { RequireSameTokens(FakeTokenizer(), "big", Respelled(), "small one"); }),
            "the draft model small one has another tokenizer than big: token 120 is \"\\\"y\\\"\", "
            "expected \"x\"");
}

TEST(DraftModel, LoadsBesideTheModelOrIsRefused) {
  const Tokens prompt = Prompt(1, 100);
  const Engine plain(kTiny, {.threads = 1});
  const Engine drafting(kTiny, {.threads = 1, .weights = "int8", .draft_model = kTiny});
  const Engine int8(kTiny, {.threads = 1, .weights = "int8"});
  for (const SessionOptions& options :
       {SessionOptions{}, SessionOptions{.kv = "blocks"}, SessionOptions{.kv = "sinks:4+60"},
        SessionOptions{.kv = "dense", .prefill = "star:block=64,anchor=64"},
        SessionOptions{.kv_type = "int8"}}) {
    EXPECT_EQ(drafting.NewSession(options).Generate(prompt, With(Greedy(60), "model")).tokens,
              int8.NewSession(options).Generate(prompt, Greedy(60)).tokens)
        << options.kv << options.prefill;
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kInput,
                      [&] { plain.NewSession({}).Generate(prompt, With(Greedy(3), "model")); }),
              HasSubstr("needs a draft model, and none was loaded"));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput,
                      [] {
                        Engine(kTiny, {.threads = 1,
                                       .draft_model = GODWIT_SOURCE_DIR "/models/stories-3m"});
                      }),
              HasSubstr("has another tokenizer than"));
  EXPECT_THAT(
      ErrorOf(ErrorKind::kIo, [] { Engine(kTiny, {.threads = 1, .draft_model = "/nowhere"}); }),
      HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace godwit::draft_model_test
