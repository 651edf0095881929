// SuiteReader: asks a model the questions of samples, under one cache policy.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "eval/suites/sample.h"
#include "godwit/engine.h"

namespace godwit::eval {

class SuiteReader {
 public:
  using OnProgress = std::function<void(const PromptProgress& progress)>;

  // query_tokens: as in GenerateOptions.
  explicit SuiteReader(std::function<Session()> new_session,
                       int64_t query_tokens = GenerateOptions().query_tokens)
      : new_session_(std::move(new_session)), query_tokens_(query_tokens) {}

  // The greedy answer. Tokens that a sample shares with the one before are not read again: a fork
  // is asked the question. Throws as Session::Generate does.
  GenerateResult Ask(const Sample& sample, const OnProgress& on_progress);

 private:
  const std::function<Session()> new_session_;
  const int64_t query_tokens_;
  std::optional<Session> shared_;
};

}  // namespace godwit::eval
