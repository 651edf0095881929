#include "chat/response_request.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json_found.h"
#include "base/quote.h"
#include "chat/fixed_fields.h"
#include "chat/request_messages.h"

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
    RefuseMedia(part);
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
  return {{"role", item["role"]}, {"content", PartsOf(item["content"])}};
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

// Beside those of chats.
constexpr FixedField kFixedOfResponses[] = {
    {"background", "[false]", "an answer comes to whoever waits for it"},
    {"truncation", R"(["disabled"])", "nothing is cut"},
    {"tools", "[[]]", "they are for /v1/chat/completions"},
    {"include", "[[]]", "there is nothing more to tell"},
    {"tool_choice", R"(["auto", "none"])", "there are no tools here"},
};

// The format that "text" asks for, as a chat has it.
Json FormatOf(const Json& text) {
  const Json format = text.is_object() ? text.value("format", Json()) : Json();
  const bool is_known =
      text.is_object() && std::ranges::all_of(text.items(), [](const auto& part) {
        return part.key() == "format" || (part.key() == "verbosity" && part.value() == "medium");
      });
  if (!is_known) RefuseField("text", R"({"format": {"type": "..."}})", text);
  if (!format.is_object() || format.value("type", Json()) != "json_schema") return format;
  Json schema = format;
  schema.erase("type");
  return {{"type", "json_schema"}, {"json_schema", schema}};
}

// How much the model is to think. Its thoughts are not summarised: "auto" asks for what there is.
void TakeReasoning(const Json& value, Json& chat) {
  if (!value.is_object()) RefuseField("reasoning", "an object", value);
  for (const auto& [name, part] : value.items()) {
    if (name == "effort") {
      chat["reasoning_effort"] = part;
    } else if ((name != "summary" && name != "generate_summary") ||
               (!part.is_null() && part != "auto")) {
      RefuseField("reasoning", R"({"effort": "..."}, with "summary": "auto" or without)", value);
    }
  }
}

// What a chat has and this has not, or by another name.
constexpr std::string_view kOfChats[] = {"messages",
                                         "prompt",
                                         "max_tokens",
                                         "n",
                                         "stream_options",
                                         "max_completion_tokens",
                                         "logprobs",
                                         "top_logprobs",
                                         "return_token_ids",
                                         "response_format",
                                         "echo"};
// Who asks, and whom, is not the engine's business.
constexpr std::string_view kPassedOver[] = {"parallel_tool_calls"};

bool Is(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

ResponseRequest ParseResponseRequest(const Json& body, const CompletionDefaults& defaults) {
  if (!body.is_object()) Throw(ErrorKind::kInput, "expected a request that is an object");
  ResponseRequest request;
  Json chat{{"messages", MessagesOf(body)}};
  for (const auto& [name, value] : body.items()) {
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
    } else if (name == "reasoning") {
      TakeReasoning(value, chat);
    } else if (IsFixed(kFixedOfResponses, name, value, defaults.lenient)) {
      continue;
    } else if (!Is(name, kOfChats)) {
      chat[name] = value;
    } else if (!defaults.lenient) {
      Throw(ErrorKind::kInput, "unknown field {}; --lenient passes over it", Quote(name));
    }
  }
  request.completion = ParseCompletionRequest(chat, defaults);
  return request;
}

}  // namespace godwit::chat
