// For tests: engines whose answers must not depend on what they did before, and saved texts.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "engine/engine_impl.h"
#include "engine/engine_test_support.h"
#include "tests/session_of.h"

namespace godwit {

// Pseudo-random words of a vocabulary of 128.
inline Tokens Words(int i, int64_t length) {
  Tokens words = Prompt(i, length);
  for (int32_t& word : words) word %= 128;
  return words;
}

inline Tokens Join(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class AnswersTest : public testing::Test {
 protected:
  // An engine of the model under test.
  virtual std::unique_ptr<Engine::Impl> MakeEngine(const LoadOptions& options) = 0;

  std::unique_ptr<Engine::Impl> NewEngine(LoadOptions options = {}) {
    options.threads = 2;
    return MakeEngine(options);
  }
  // An engine that saves texts in the test's folder.
  std::unique_ptr<Engine::Impl> NewSavingEngine() {
    auto engine = NewEngine();
    engine->scheduler = nullptr;
    engine->saved = std::make_unique<SavedTexts>(
        folder_.path() / "cache", /*bytes=*/0, /*save_tokens=*/64,
        [this](const std::string& notice) { notices_.push_back(notice); });
    engine->scheduler = std::make_unique<Scheduler>(
        *engine->model, engine->isa, engine->pool, /*step_tokens=*/512,
        /*prompt_slowdown=*/0, engine->saved.get(), SteadyMs, engine->group->turns);
    return engine;
  }
  // The answer of an engine that has done nothing else.
  Answer Alone(const Tokens& prompt, int64_t tokens) {
    const auto engine = NewEngine();
    return AnswerOf(SessionOf(*engine).Generate(prompt, GreedyWithLogprobs(tokens)));
  }

  // A later process finds what an earlier one saved, and parts from it.
  void ExpectALaterProcessGoesOn() {
    const Tokens prompt = Words(1, 300);
    const Answer alone = Alone(prompt, 40);
    const auto generate = [&](const Tokens& text) {
      const auto engine = NewSavingEngine();
      return SessionOf(*engine).Generate(text, GreedyWithLogprobs(40));
    };
    const auto first = generate(prompt);
    EXPECT_EQ(AnswerOf(first), alone);
    EXPECT_EQ(first.disk_tokens, 0);
    const auto again = generate(prompt);
    EXPECT_EQ(AnswerOf(again), alone);
    EXPECT_GE(again.disk_tokens, 256);
    const Tokens other = Join({prompt.begin(), prompt.begin() + 290}, Words(7, 60));
    const auto parted = generate(other);
    EXPECT_EQ(AnswerOf(parted), Alone(other, 40));
    EXPECT_EQ(parted.disk_tokens, 256) << "up to the last whole tile before they part";
    EXPECT_THAT(notices_, testing::IsEmpty());
  }

  TempFolder folder_;
  std::vector<std::string> notices_;
};

}  // namespace godwit
