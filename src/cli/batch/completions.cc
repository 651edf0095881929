#include "cli/batch/completions.h"

#include <string>

#include "base/error.h"

namespace godwit::cli {

Completions::Completions(const Engine& engine, const SessionOptions& session)
    : engine_(engine), session_(engine.NewSession(session)) {}

std::vector<int32_t> Completions::Prompt(const chat::CompletionRequest& request) const {
  if (const auto* tokens = std::get_if<std::vector<int32_t>>(&request.prompt)) return *tokens;
  if (const auto* text = std::get_if<std::string>(&request.prompt)) return session_.Tokenize(*text);
  return session_.Tokenize(
      engine_.ApplyChatTemplate(std::get<std::vector<Message>>(request.prompt), /*open=*/true,
                                request.template_variables.dump()),
      /*add_special=*/false);
}

std::vector<GenerateResult> Completions::Generate(const chat::CompletionRequest& request) {
  if (request.top_logprobs >= 0) {
    Throw(ErrorKind::kUnsupported, "\"logprobs\": there are none yet");
  }
  const std::vector<int32_t> prompt = Prompt(request);
  GenerateOptions options = request.generate;
  std::vector<GenerateResult> results;
  for (int i = 0; i < request.samples; ++i) {
    options.sequence = static_cast<uint64_t>(i);
    if (!cancelled_) results.push_back(session_.Generate(prompt, options));
    if (cancelled_ || results.back().finish_reason == FinishReason::kCancelled) {
      Throw(ErrorKind::kCancelled, "cancelled");
    }
  }
  return results;
}

void Completions::Cancel() noexcept {
  cancelled_ = true;
  session_.Cancel();
}

}  // namespace godwit::cli
