// For tests only: engines whose models have what predicts tokens, a layer or a head. Each test
// gives the engine with it and the draft source's name.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/test_folder.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"
#include "engine/generation_impl.h"
#include "model/decoder.h"
#include "tests/session_of.h"
#include "tests/timed_model.h"

namespace godwit {

inline GenerateOptions With(GenerateOptions options, const std::string& draft) {
  options.draft = draft;
  return options;
}

// Prompts of tokens that these models have.
inline Tokens SmallPrompt(int i, int64_t length) {
  Tokens prompt;
  for (int64_t k = 0; k < length; ++k) {
    prompt.push_back(static_cast<int32_t>((k * k * 7 + 13 * i + k * i) % 51));
  }
  return prompt;
}

class PredictingEngine : public testing::Test {
 protected:
  static std::unique_ptr<Engine::Impl> TimedBy(std::unique_ptr<Decoder> decoder,
                                               int64_t kv_memory_bytes) {
    DecoderSpec spec = decoder->spec();
    return std::make_unique<Engine::Impl>(
        std::make_unique<TimedModel>(std::move(decoder)), std::move(spec), nullptr, SpecialTokens{},
        LoadOptions{.threads = 2, .kv_memory_bytes = kv_memory_bytes}, TimedModel::NowMs);
  }
  Engine Plain(LoadOptions options = {}) const {
    options.threads = 2;
    return Engine(folder_.string(), options);
  }
  GenerateResult Alone(const Tokens& prompt, const GenerateOptions& options,
                       const SessionOptions& session = {}) const {
    return Plain().NewSession(session).Generate(prompt, options);
  }

  void ExpectFewerSteps(const Engine::Impl& engine, const std::string& source) const {
    const Tokens prompt = SmallPrompt(1, 100);
    const auto plain = Alone(prompt, GreedyWithLogprobs(200));
    for (const std::string& draft : {source, "ngram," + source}) {
      Session session = SessionOf(engine);
      const auto drafted = session.Generate(prompt, With(GreedyWithLogprobs(200), draft));
      EXPECT_EQ(AnswerOf(drafted), AnswerOf(plain));
      EXPECT_GT(drafted.drafts->accepted, 80);
      EXPECT_LT(drafted.drafts->steps, 120);
      EXPECT_EQ(drafted.drafts->sources.back().name, source);
      EXPECT_GT(drafted.drafts->sources.back().accepted, 0);
    }
  }

  void ExpectTurnsAndForksToGoOn(const Engine::Impl& engine, const std::string& source) const {
    const Engine without = Plain();
    for (const char* kv : {"dense", "sinks:4+60"}) {
      Session plain = without.NewSession({.kv = kv}), drafted = SessionOf(engine, {.kv = kv});
      Tokens text = SmallPrompt(2, 90);
      for (int turn = 0; turn < 3; ++turn) {
        const auto expected = plain.Generate(text, Greedy(50 + turn));
        Session fork = drafted.Fork();
        for (Session* session : {&fork, &drafted}) {
          const auto found = session->Generate(text, With(Greedy(50 + turn), source));
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
  void ExpectTextsOfEachAlone(const std::shared_ptr<const Engine::Impl>& engine,
                              const std::string& source) const {
    const auto prompt = [](int i) { return SmallPrompt(i % 4, 100 + i % 3); };
    const std::string beside = "ngram," + source;
    const auto options = [&](int i) {
      GenerateOptions options = Greedy(40 + i);
      if (i % 3 == 0) options.sampler = {.temperature = 1, .seed = static_cast<uint64_t>(i)};
      const std::string drafts[] = {source, beside, source, ""};
      return With(options, drafts[i % 4]);
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

  TempFolder temp_;
  std::filesystem::path folder_ = temp_.path() / "model";
};

}  // namespace godwit
