#include <variant>

#include "base/json.h"
#include "chat/completion_request.h"
#include "tests/fuzz/targets.h"

namespace godwit::fuzz {

// The body of a request, as it comes from anybody.
void FuzzCompletionRequest(std::span<const uint8_t> input) {
  Accepts([&] {
    const auto body = ParseOrderedJson(AsText(input), "the body", {.reject_duplicate_keys = true});
    try {
      const chat::CompletionRequest request = chat::ParseCompletionRequest(body);
      std::visit([](const auto& prompt) { Require(!prompt.empty(), "there is a prompt"); },
                 request.prompt);
      Require(request.samples >= 1 && request.samples <= 128, "samples have a limit");
      Require(request.generate.stop.size() <= 16, "stops have a limit");
      Require(request.generate.top_logprobs <= 20, "logprobs have a limit");
      Require(request.stream || !(request.include_usage || request.return_progress),
              "what is for streams is of one");
      Require(request.template_variables.is_object(), "variables have names");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput) throw;
      Require(std::string_view(error.what()).size() < 16'384, "messages are short");
    }
  });
}

}  // namespace godwit::fuzz
