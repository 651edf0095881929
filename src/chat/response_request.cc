#include "chat/response_request.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json_found.h"
#include "base/quote.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void RefuseField(std::string_view field, std::string_view expected,
                              const Json& found) {
  Throw(ErrorKind::kInput, "{}: expected {}, found {}", Quote(field), expected,
        FoundUnquoted(nlohmann::json(found)));
}

// The parts of a message, as a chat has them.
Json PartsOf(const Json& content) {
  if (!content.is_array()) return content;
  constexpr std::array<std::string_view, 3> kTexts = {"input_text", "output_text", "text"};
  Json parts = Json::array();
  for (const Json& part : content) {
    const bool is_text =
        part.is_object() && part.value("text", Json()).is_string() &&
        part.value("type", Json()).is_string() &&
        std::ranges::find(kTexts, part["type"].get_ref<const std::string&>()) != kTexts.end();
    if (!is_text) RefuseField("input", R"(parts {"type": "input_text", "text": "..."})", part);
    parts.push_back({{"type", "text"}, {"text", part["text"]}});
  }
  return parts;
}

// A message of the input: of a client, or of an answer that it had.
Json MessageOf(const Json& item) {
  if (!item.is_object() || item.value("type", Json("message")) != "message") {
    RefuseField("input", "a text or a list of messages", item);
  }
  for (const char* const key : {"role", "content"}) {
    if (!item.contains(key)) RefuseField("input", "messages of \"role\" and \"content\"", item);
  }
  const Json& role = item["role"];
  return {{"role", role == "developer" ? Json("system") : role},
          {"content", PartsOf(item["content"])}};
}

Json MessagesOf(const Json& body) {
  Json messages = Json::array();
  const Json instructions = body.value("instructions", Json());
  if (!instructions.is_null()) {
    if (!instructions.is_string()) RefuseField("instructions", "text", instructions);
    messages.push_back({{"role", "system"}, {"content", instructions}});
  }
  const Json input = body.value("input", Json());
  if (input.is_string()) {
    messages.push_back({{"role", "user"}, {"content", input}});
  } else if (input.is_array() && !input.empty()) {
    for (const Json& item : input) messages.push_back(MessageOf(item));
  } else {
    RefuseField("input", "a text or a list of messages", input);
  }
  return messages;
}

// Fields that have one value here, which a client may well say.
struct Fixed {
  std::string_view name;
  const char* values;  // a list
};
constexpr Fixed kFixed[] = {
    {"store", "[false]"},
    {"background", "[false]"},
    {"truncation", R"(["disabled"])"},
    {"tools", "[[]]"},
    {"include", "[[]]"},
    {"tool_choice", R"(["auto", "none"])"},
    {"service_tier", R"(["auto", "default"])"},
};

// The format that "text" asks for, as a chat has it.
Json FormatOf(const Json& text) {
  const Json format = text.is_object() ? text.value("format", Json()) : Json();
  if (!text.is_object() || text.size() > (text.contains("format") ? 1 : 0)) {
    RefuseField("text", R"({"format": {"type": "..."}})", text);
  }
  if (!format.is_object() || format.value("type", Json()) != "json_schema") return format;
  Json schema = format;
  schema.erase("type");
  return {{"type", "json_schema"}, {"json_schema", schema}};
}

// What a chat has and this has not, or by another name.
constexpr std::string_view kOfChats[] = {"messages",         "prompt",
                                         "max_tokens",       "n",
                                         "stream_options",   "max_completion_tokens",
                                         "logprobs",         "top_logprobs",
                                         "return_token_ids", "response_format"};
// Who asks, and whom, is not the engine's business.
constexpr std::string_view kPassedOver[] = {"parallel_tool_calls", "prompt_cache_key",
                                            "safety_identifier"};

bool Is(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

ResponseRequest ParseResponseRequest(const Json& body, const CompletionDefaults& defaults) {
  if (!body.is_object()) Throw(ErrorKind::kInput, "expected a request that is an object");
  ResponseRequest request;
  Json chat{{"messages", MessagesOf(body)}};
  for (const auto& [name, value] : body.items()) {
    const auto* const fixed = std::ranges::find(kFixed, std::string_view(name), &Fixed::name);
    if (name == "input" || name == "instructions" || value.is_null() || Is(name, kPassedOver)) {
      continue;
    } else if (name == "max_output_tokens") {
      if (!value.is_number_unsigned()) RefuseField(name, "a whole number", value);
      chat["max_tokens"] = value;
    } else if (name == "text") {
      chat["response_format"] = FormatOf(value);
    } else if (name == "metadata") {
      if (!value.is_object()) RefuseField(name, "an object", value);
      request.metadata = value;
    } else if (fixed != std::end(kFixed)) {
      const Json values = Json::parse(fixed->values);
      if (defaults.lenient || std::ranges::find(values, value) != values.end()) continue;
      RefuseField(name, fmt::format("{} or nothing", values.front().dump()), value);
    } else if (!Is(name, kOfChats)) {
      chat[name] = value;
    } else if (!defaults.lenient) {
      Throw(ErrorKind::kInput, "unknown field {}", Quote(name));
    }
  }
  request.completion = ParseCompletionRequest(chat, defaults);
  return request;
}

}  // namespace godwit::chat
