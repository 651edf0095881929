#include <variant>

#include "base/json.h"
#include "chat/anthropic_request.h"
#include "chat/completion_request.h"
#include "chat/infill_request.h"
#include "chat/plans.h"
#include "chat/response_request.h"
#include "tests/fuzz/targets.h"

namespace godwit::fuzz {
namespace {

void Check(const chat::CompletionRequest& request) {
  std::visit([&](const auto& prompt) { Require(request.fill || !prompt.empty(), "a prompt"); },
             request.prompt);
  Require(request.samples >= 1 && request.samples <= 128, "samples have a limit");
  Require(request.answers() <= 1024, "answers have a limit");
  Require(!request.is_chat() || (request.more_prompts.empty() && !request.echo), "a chat is one");
  Require(request.generate.stop.size() <= 16, "stops have a limit");
  Require(request.generate.top_logprobs <= 20, "logprobs have a limit");
  Require(request.stream || !(request.include_usage || request.return_progress),
          "what is for streams is of one");
  Require(request.first_token_within_s >= 0 && request.first_token_within_s <= 1e6,
          "a time has a limit");
  Require(request.template_variables.is_object(), "variables have names");
  Require(!request.kv && !request.prefill, "nothing may be chosen");
}

void CheckFill(const chat::CompletionRequest& request) {
  Check(request);
  Require(request.fill && request.answers() == 1 && !request.is_chat(), "a text with one hole");
}

// parse: reads a request from a body.
template <typename Parse>
void CheckRefusal(const Parse& parse) {
  try {
    parse();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    Require(std::string_view(error.what()).size() < 16'384, "messages are short");
  }
}

}  // namespace

// The body of a request from anybody, for the paths of completions, responses, messages and infill.
void FuzzCompletionRequest(std::span<const uint8_t> input) {
  Accepts([&] {
    const auto body = ParseOrderedJson(AsText(input), "the body", {.reject_duplicate_keys = true});
    for (const bool lenient : {false, true}) {
      const chat::CompletionDefaults defaults{.lenient = lenient};
      CheckRefusal([&] { Check(chat::ParseCompletionRequest(body, defaults)); });
      CheckRefusal([&] { Check(chat::ParseResponseRequest(body, defaults).completion); });
      CheckRefusal([&] { Check(chat::ParseAnthropicRequest(body, defaults)); });
      CheckRefusal([&] { Check(chat::ParsePlanRequest(body, defaults)); });
      CheckRefusal([&] { CheckFill(chat::ParseInfillRequest(body, defaults)); });
    }
  });
}

}  // namespace godwit::fuzz
