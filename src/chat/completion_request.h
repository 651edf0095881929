// CompletionRequest: the body of /v1/chat/completions or /v1/completions in the shape of OpenAI's
// API, with the fields that llama.cpp and vLLM add.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "chat/request_passages.h"
#include "chat/tools.h"
#include "godwit/engine.h"

namespace godwit::chat {

struct CompletionRequest {
  // A chat, a text, or the tokens of a text.
  std::variant<std::vector<Message>, std::string, std::vector<int32_t>> prompt;
  // More prompts, after a text, that are to be continued as well.
  std::vector<std::variant<std::string, std::vector<int32_t>>> more_prompts;
  int samples = 1;             // "n": answers to each prompt
  bool continues = false;      // go on with a chat's last message, the assistant's
  bool echo = false;           // answers to a text begin with the text
  std::optional<FillIn> fill;  // the hole to fill: `before` is the prompt
  GenerateOptions generate;
  std::optional<std::string> kv;  // kv and prefill override SessionOptions
  std::optional<std::string> prefill;
  std::optional<RequestPassages> passages;  // of a chat
  Tools tools;
  bool parallel_tool_calls = true;
  bool return_token_ids = false;
  bool stream = false;           // send the answer in chunks (completion_chunks.h)
  bool include_usage = false;    // then end with token counts
  bool return_progress = false;  // and report the progress of the prompt first
  // The most seconds until the first token, for which the way of answering is chosen (plans.h); 0:
  // any number.
  double first_token_within_s = 0;
  bool explain_cache = false;  // "usage" tells where the prompt left the cache (prefix_doctor.h)
  // Members of "usage" that were found before the answer (PrepareRequest).
  nlohmann::ordered_json more_usage = nlohmann::ordered_json::object();
  nlohmann::ordered_json template_variables;  // a JSON object, for Engine::ApplyChatTemplate

  bool is_chat() const { return std::holds_alternative<std::vector<Message>>(prompt); }
  // The number of answers. Answers to one prompt stand together.
  int answers() const { return samples * (1 + static_cast<int>(more_prompts.size())); }
};

// Values for fields that a request leaves out, and limits on those that it names.
struct CompletionDefaults {
  GenerateOptions generate;  // its timeout_ms is also the most that a request may ask for
  // The values that requests may name as "kv" and "prefill".
  std::vector<std::string> kv_choices;
  std::vector<std::string> prefill_choices;
  bool lenient = false;       // unknown fields are ignored
  bool random_seeds = false;  // a request without a seed gets a random one
  // The reach of a penalty that the request names. generate's reach may come from the model's own
  // settings.
  int repeat_last_n = SamplerOptions().repeat_last_n;
  nlohmann::ordered_json template_variables = nlohmann::ordered_json::object();
};

// Parses a request. A field that is null counts as missing. fill: the text behind the hole; the
// prompt is then a text that may be empty, and has no "suffix". Throws Error(kInput) for a field
// that is unknown (unless lenient), has another type, makes no sense, or contradicts another field.
// The error names the field and quotes nothing of its value. Checks that depend on the model, such
// as the prompt's length, are left to the engine.
CompletionRequest ParseCompletionRequest(const nlohmann::ordered_json& body,
                                         const CompletionDefaults& defaults = {},
                                         std::optional<FillIn> fill = std::nullopt);

}  // namespace godwit::chat
