#include "chat/anthropic_request.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "chat/anthropic_messages.h"
#include "chat/fixed_fields.h"
#include "chat/json_fields.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

// Fields with one possible value, beside those of chats.
constexpr FixedField kFixedOfAnthropic[] = {
    {"service_tier", R"(["auto", "standard_only"])", "there is one tier for all requests"},
    {"speed", R"(["standard"])", "there is one speed"},
    {"mcp_servers", "[[]]", "only the client can call tools"},
    {"context_management", "[{}]", "a conversation is never shortened"},
};

// Fields of a chat that this API lacks, or names differently.
constexpr std::string_view kNotOfAnthropic[] = {
    "prompt",
    "n",
    "echo",
    "stop",
    "logprobs",
    "top_logprobs",
    "stream_options",
    "max_completion_tokens",
    "response_format",
    "reasoning_effort",
    "parallel_tool_calls",
    "return_token_ids",
};

Json StopsOf(const Json& value) {
  const auto is_text = [](const Json& stop) { return stop.is_string(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_text)) {
    RefuseField("stop_sequences", "a list of texts", value);
  }
  return value;
}

void TakeToolChoiceOf(const Json& value, Json& chat) {
  const Json type = value.is_object() ? value.value("type", Json()) : Json();
  for (const auto& [name, own] :
       {std::pair("auto", "auto"), std::pair("any", "required"), std::pair("none", "none")}) {
    if (type == name) chat["tool_choice"] = own;
  }
  if (type == "tool") {
    chat["tool_choice"] = {{"type", "function"},
                           {"function", {{"name", value.value("name", Json())}}}};
  }
  const Json single =
      value.is_object() ? value.value("disable_parallel_tool_use", Json(false)) : Json();
  const size_t parts = 1 + (type == "tool" ? 1 : 0) +
                       (value.is_object() ? value.count("disable_parallel_tool_use") : 0);
  if (!chat.contains("tool_choice") || !single.is_boolean() || value.size() != parts) {
    RefuseField("tool_choice",
                R"({"type": "auto", "any", "none", or "tool" with a "name"}, with )"
                R"("disable_parallel_tool_use": true or false, or without)",
                value);
  }
  chat["parallel_tool_calls"] = single == false;
}

// The reasoning effort from a budget of reasoning tokens. The model itself ends its reasoning.
std::string_view EffortOf(const Json& value) {
  if (!value.is_number_unsigned()) {
    RefuseField("thinking", R"("budget_tokens" that are a whole number)", value);
  }
  const auto tokens = value.get<uint64_t>();
  return tokens < 2048 ? "low" : tokens < 8192 ? "medium" : "high";
}

// Whether the model is to reason, if the request says so.
std::optional<bool> TakeThinking(const Json& value, Json& chat) {
  const Json type = value.is_object() ? value.value("type", Json()) : Json();
  bool is_known = type == "enabled" || type == "disabled" || type == "adaptive";
  for (const auto& [name, part] : value.items()) {
    is_known &=
        name == "type" || name == "display" || (name == "budget_tokens" && type == "enabled");
  }
  if (!is_known) {
    RefuseField("thinking",
                R"({"type": "enabled", "budget_tokens": ...}, "adaptive" or "disabled")", value);
  }
  // An effort that the request names wins, whether it stands before or behind this.
  if (value.contains("budget_tokens")) {
    chat.emplace("reasoning_effort", EffortOf(value["budget_tokens"]));
  }
  if (type == "adaptive") return std::nullopt;
  return type == "enabled";
}

void TakeOutputConfig(const Json& value, Json& chat) {
  if (!value.is_object()) RefuseField("output_config", "an object", value);
  for (const auto& [name, part] : value.items()) {
    const bool is_schema = part.is_object() && part.size() == 2 && part.contains("schema") &&
                           part.value("type", Json()) == "json_schema";
    if (name == "effort" && part.is_string()) {
      chat["reasoning_effort"] = part == "max" ? Json("xhigh") : part;
    } else if (name == "format" && is_schema) {
      chat["response_format"] = {{"type", "json_schema"},
                                 {"json_schema", {{"name", "output"}, {"schema", part["schema"]}}}};
    } else if (!part.is_null()) {
      RefuseField("output_config",
                  R"("effort", and a "format" {"type": "json_schema", "schema": {...}})", value);
    }
  }
}

}  // namespace

CompletionRequest ParseAnthropicRequest(const Json& body, const CompletionDefaults& defaults,
                                        bool for_count) {
  if (!body.is_object()) Throw(ErrorKind::kInput, "expected a request that is an object");
  Json chat{
      {"messages", ChatMessagesOfAnthropic(body.value("system", Json()),
                                           body.value("messages", Json()), defaults.lenient)}};
  std::optional<bool> thinks;
  for (const auto& [name, value] : body.items()) {
    if (name == "messages" || name == "system" || name == "cache_control" || value.is_null()) {
      continue;
    } else if (name == "stop_sequences") {
      chat["stop"] = StopsOf(value);
    } else if (name == "tools") {
      chat["tools"] = ChatToolsOfAnthropic(value, defaults.lenient);
    } else if (name == "tool_choice") {
      TakeToolChoiceOf(value, chat);
    } else if (name == "thinking") {
      thinks = TakeThinking(value, chat);
    } else if (name == "output_config") {
      TakeOutputConfig(value, chat);
    } else if (IsFixed(kFixedOfAnthropic, name, value, defaults.lenient)) {
      continue;
    } else if (std::ranges::find(kNotOfAnthropic, name) == std::end(kNotOfAnthropic)) {
      chat[name] = value;
    } else if (!defaults.lenient) {
      Throw(ErrorKind::kInput, "unknown field {}; --lenient ignores it", Quote(name));
    }
  }
  if (!for_count && !chat.contains("max_tokens")) {
    Throw(ErrorKind::kInput, "a request needs \"max_tokens\"");
  }
  // The request's own template variables win.
  if (thinks) {
    Json& variables = chat["chat_template_kwargs"];
    if (variables.is_null()) variables = Json::object();
    if (variables.is_object()) variables.emplace("enable_thinking", *thinks);
  }
  return ParseCompletionRequest(chat, defaults);
}

}  // namespace godwit::chat
