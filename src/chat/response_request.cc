#include "chat/response_request.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "chat/fixed_fields.h"
#include "chat/json_fields.h"
#include "chat/response_tools.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

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
    for (Json& message : ChatMessagesOf(input)) messages.push_back(std::move(message));
  } else {
    RefuseField("input", "a text or a list of messages", input);
  }
  return messages;
}

// Fields with one possible value, beside those of chats.
constexpr FixedField kFixedOfResponses[] = {
    {"truncation", R"(["disabled"])", "text is never truncated"},
    {"include", "[[]]", "there are no further outputs"},
};

// The format that "text" asks for, in a chat's form.
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

// Takes the reasoning effort. Reasoning is not summarised: "auto" asks for what is available.
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

// Fields of a chat that this API lacks, or names differently.
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

bool Is(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

ResponseRequest ParseResponseRequest(const Json& body, const CompletionDefaults& defaults) {
  if (!body.is_object()) Throw(ErrorKind::kInput, "expected a request that is an object");
  ResponseRequest request;
  Json chat{{"messages", MessagesOf(body)}};
  if (const Json background = body.value("background", Json()); !background.is_null()) {
    if (!background.is_boolean()) RefuseField("background", "true or false", background);
    request.background = background.get<bool>();
  }
  for (const auto& [name, value] : body.items()) {
    if (name == "input" || name == "instructions" || name == "background" || value.is_null()) {
      continue;
    } else if (name == "store" && value == true && request.background) {
      continue;  // an answer in the background is kept for a while
    } else if (name == "max_output_tokens") {
      if (!value.is_number_unsigned()) RefuseField(name, "a whole number", value);
      chat["max_tokens"] = value;
    } else if (name == "tools") {
      chat["tools"] = ChatToolsOf(value);
      request.tools = value;
    } else if (name == "tool_choice") {
      chat["tool_choice"] = ChatToolChoiceOf(value);
      request.tool_choice = value;
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
      Throw(ErrorKind::kInput, "unknown field {}; --lenient ignores it", Quote(name));
    }
  }
  request.completion = ParseCompletionRequest(chat, defaults);
  return request;
}

}  // namespace godwit::chat
