// Completions: from a request to its answers, through the public API.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "chat/completion_request.h"
#include "godwit/engine.h"

namespace godwit::cli {

// One request at a time.
class Completions {
 public:
  Completions(const Engine& engine, const SessionOptions& session);

  // All answers to it, in order. Throws what the engine throws, and Error(kCancelled).
  std::vector<GenerateResult> Generate(const chat::CompletionRequest& request);

  // Any thread: what is in progress ends within a moment, and nothing begins any more.
  void Cancel() noexcept;

 private:
  std::vector<int32_t> Prompt(const chat::CompletionRequest& request) const;

  const Engine& engine_;
  Session session_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace godwit::cli
