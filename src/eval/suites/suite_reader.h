// SuiteReader: asks a model the questions of samples, under several cache policies.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/suites/sample.h"
#include "godwit/engine.h"

namespace godwit::eval {

// A context is read once for all policies that read it alike, and forks are asked its questions.
// The next sample's context is read from where it differs. That saves time and changes no answer.
class SuiteReader {
 public:
  using OnProgress = std::function<void(const PromptProgress& progress)>;
  // Makes an empty session under a policy (SessionOptions::kv), of one engine and with options that
  // are alike in all else.
  using NewSession = std::function<Session(const std::string& kv)>;

  // query_tokens: as in GenerateOptions; 0: those of each sample's question, with the beginning of
  // the answer.
  explicit SuiteReader(NewSession new_session, int64_t query_tokens = 0)
      : new_session_(std::move(new_session)), query_tokens_(query_tokens) {}

  // The greedy answer of the policy. Throws as Session::Generate does.
  GenerateResult Ask(const Sample& sample, const std::string& kv, const OnProgress& on_progress);

 private:
  // A context, as one policy has read it.
  struct Context {
    std::string kv;
    Session session;
    std::vector<int32_t> tokens;
  };

  Session SessionBehind(std::span<const int32_t> context, const std::string& kv,
                        const OnProgress& on_progress);
  // Reads the context where the session holds another one.
  static void Read(std::span<const int32_t> tokens, Context& context,
                   const OnProgress& on_progress);

  const NewSession new_session_;
  const int64_t query_tokens_;
  std::vector<Context> contexts_;  // of the last sample, each read in another way
};

}  // namespace godwit::eval
