// CompletionRequest: what a client asks of a model, in the shape of OpenAI's API: the body of
// /v1/chat/completions or /v1/completions, with the fields that llama.cpp and vLLM add to it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "chat/tools.h"
#include "godwit/engine.h"

namespace godwit::chat {

struct CompletionRequest {
  // A chat, a text, or the tokens of one.
  std::variant<std::vector<Message>, std::string, std::vector<int32_t>> prompt;
  // Behind a text, others that are to be continued as well.
  std::vector<std::variant<std::string, std::vector<int32_t>>> more_prompts;
  int samples = 1;             // "n": answers to each
  bool continues = false;      // a chat's last message, of the assistant, rather than answering it
  bool echo = false;           // the answers to a text begin with it
  std::optional<FillIn> fill;  // a text goes on in it: `before` is the prompt
  GenerateOptions generate;
  std::optional<std::string> kv;  // as SessionOptions has them, in place of what they are
  std::optional<std::string> prefill;
  Tools tools;
  bool parallel_tool_calls = true;
  bool return_token_ids = false;
  bool stream = false;                        // the answer comes in pieces (completion_chunks.h),
  bool include_usage = false;                 // at its end what it took,
  bool return_progress = false;               // and before it how far its prompt is read
  nlohmann::ordered_json template_variables;  // an object: of Engine::ApplyChatTemplate

  bool is_chat() const { return std::holds_alternative<std::vector<Message>>(prompt); }
  // The answers to one prompt stand together.
  int answers() const { return samples * (1 + static_cast<int>(more_prompts.size())); }
};

// What holds where a request says nothing, and what it may say.
struct CompletionDefaults {
  GenerateOptions generate;  // its timeout_ms is the most that a request may ask for, too
  // What requests may name as "kv" and "prefill".
  std::vector<std::string> kv_choices;
  std::vector<std::string> prefill_choices;
  bool lenient = false;       // what is not known is passed over
  bool random_seeds = false;  // a request that names none gets one of its own
  // For the reach of a penalty that the request does name: generate's may be that of a model's own.
  int repeat_last_n = SamplerOptions().repeat_last_n;
  nlohmann::ordered_json template_variables = nlohmann::ordered_json::object();
};

// Null counts as not being there. fill: what follows the prompt, a text, which may then be empty,
// and has no "suffix". Throws Error(kInput) that names the field, and quotes nothing
// that is said in it: one that is not known (unless lenient), is of another type, makes no sense,
// or contradicts another one. What depends on the model, such as the length of the prompt, is left
// to the engine.
CompletionRequest ParseCompletionRequest(const nlohmann::ordered_json& body,
                                         const CompletionDefaults& defaults = {},
                                         std::optional<FillIn> fill = std::nullopt);

}  // namespace godwit::chat
