// Shared parts of the tests of an engine with a small model.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "godwit/engine.h"

namespace godwit {

using Tokens = std::vector<int32_t>;

inline const std::string kTiny = GODWIT_SOURCE_DIR "/tests/data/tiny-llama";

// Options for so many tokens, even behind an end of text.
inline GenerateOptions Greedy(int64_t max_tokens, int64_t query_tokens = 1) {
  GenerateOptions options{.max_tokens = max_tokens, .query_tokens = query_tokens};
  options.sampler.temperature = 0;
  options.ignore_eos = true;
  return options;
}

// Options with the log-probability of every token.
inline GenerateOptions GreedyWithLogprobs(int64_t max_tokens, int64_t query_tokens = 1) {
  GenerateOptions options = Greedy(max_tokens, query_tokens);
  options.top_logprobs = 0;
  return options;
}

// The output and the log-probabilities of its tokens, to the bit.
struct Answer {
  Tokens tokens;
  std::vector<float> logprobs;
  bool operator==(const Answer&) const = default;
};

inline Answer AnswerOf(const GenerateResult& result) {
  Answer answer{.tokens = result.tokens, .logprobs = {}};
  for (const TokenLogprobs& token : result.logprobs) answer.logprobs.push_back(token.logprob);
  return answer;
}

// Prompts that differ from their first token on.
inline Tokens Prompt(int i, int64_t length) {
  Tokens prompt;
  for (int64_t k = 0; k < length; ++k) {
    prompt.push_back(static_cast<int32_t>(3 + (k * k * 7 + 13 * i + k * i) % 200));
  }
  return prompt;
}

// Expects the same tokens, and log-probabilities with this error.
inline void ExpectNear(const GenerateResult& result, const GenerateResult& expected, double error) {
  EXPECT_EQ(result.tokens, expected.tokens);
  ASSERT_EQ(result.logprobs.size(), expected.logprobs.size());
  for (size_t i = 0; i < expected.logprobs.size(); ++i) {
    EXPECT_NEAR(result.logprobs[i].logprob, expected.logprobs[i].logprob, error);
  }
}

}  // namespace godwit
