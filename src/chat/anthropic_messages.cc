#include "chat/anthropic_messages.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "chat/json_fields.h"
#include "chat/request_messages.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

// A kind of content block, and the fields beside its type.
struct BlockKind {
  std::string_view type;
  std::string_view role;  // of messages that may have it; empty: any
  std::array<std::string_view, 2> texts;
  std::array<std::string_view, 3> others;
};
constexpr BlockKind kBlocks[] = {
    {"text", "", {"text"}, {"citations", "parsed_output"}},
    {"thinking", "assistant", {"thinking"}, {"signature"}},
    {"tool_use", "assistant", {"id", "name"}, {"input", "partial_json", "caller"}},
    {"tool_result", "user", {"tool_use_id"}, {"content", "is_error"}},
};

template <typename Names>
bool HasName(const Names& names, std::string_view name) {
  return !name.empty() && std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Throws if the object has other fields. "cache_control" changes nothing: texts that begin alike
// share their beginning anyway.
template <typename... Names>
void CheckNames(std::string_view field, const Json& object, bool lenient, const Names&... names) {
  for (const auto& [name, value] : object.items()) {
    const bool is_known =
        name == "type" || name == "cache_control" || (HasName(names, name) || ...);
    if (is_known || lenient || value.is_null()) continue;
    Throw(ErrorKind::kInput, "{}: unknown field {}; --lenient ignores it", Quote(field),
          Quote(name));
  }
}

const BlockKind& KindOf(std::string_view field, const Json& block, bool lenient) {
  RefuseMedia(block);
  const Json type = block.is_object() ? block.value("type", Json()) : Json();
  for (const BlockKind& kind : kBlocks) {
    if (type != kind.type) continue;
    CheckNames(field, block, lenient, kind.texts, kind.others);
    for (const std::string_view text : kind.texts) {
      if (text.empty() || block.value(text, Json()).is_string()) continue;
      RefuseField(field, fmt::format("a block {} with a text {}", Quote(kind.type), Quote(text)),
                  block);
    }
    return kind;
  }
  RefuseField(field, R"(blocks of "type": "text", "thinking", "tool_use" or "tool_result")", block);
}

// A text, or text blocks, in a chat's form.
Json TextsOf(std::string_view field, const Json& content, bool lenient) {
  if (content.is_string()) return content;
  if (!content.is_array()) RefuseField(field, "a text or a list of blocks", content);
  Json parts = Json::array();
  for (const Json& block : content) {
    if (KindOf(field, block, lenient).type != "text") {
      RefuseField(field, R"(blocks {"type": "text", "text": "..."})", block);
    }
    parts.push_back({{"type", "text"}, {"text", block["text"]}});
  }
  return parts;
}

// A call's arguments. A call that was cut off has an empty input, with its text beside that.
Json CallOf(const Json& block) {
  const Json input = block.value("input", Json::object());
  const Json cut = block.value("partial_json", Json());
  if (!input.is_object()) RefuseField("messages", "a block \"tool_use\" with an \"input\"", block);
  Json arguments = cut.is_string() && input.empty() ? cut : input;
  return {{"id", block["id"]},
          {"type", "function"},
          {"function", {{"name", block["name"]}, {"arguments", std::move(arguments)}}}};
}

// A tool's result. An error is told to the model in words.
Json ResultOf(const Json& block, bool lenient) {
  const Json failed = block.value("is_error", Json());
  if (!failed.is_null() && !failed.is_boolean()) {
    RefuseField("messages", "\"is_error\": true or false", failed);
  }
  const Json content = block.value("content", Json());
  Json texts = content.is_null() ? Json("") : TextsOf("messages", content, lenient);
  if (failed == true) {
    if (texts.is_string()) texts = Json::array({{{"type", "text"}, {"text", texts}}});
    texts.insert(texts.begin(), Json{{"type", "text"}, {"text", "Error:"}});
  }
  return {{"role", "tool"}, {"tool_call_id", block["tool_use_id"]}, {"content", std::move(texts)}};
}

// Adds one message or several: the result of a call is a message of its own.
void AddMessages(const Json& message, bool lenient, Json& messages) {
  if (!message.is_object() || !message.contains("role") || !message.contains("content")) {
    RefuseField("messages", "messages of \"role\" and \"content\"", message);
  }
  CheckNames("messages", message, lenient, std::array<std::string_view, 2>{"role", "content"});
  const Json& content = message["content"];
  if (!content.is_array()) {
    messages.push_back(
        {{"role", message["role"]}, {"content", TextsOf("messages", content, lenient)}});
    return;
  }
  const Json none{{"role", message["role"]}, {"content", Json::array()}};
  Json open = none;
  std::string thought;
  const size_t before = messages.size();
  const auto close = [&] {
    if (!thought.empty()) open["reasoning_content"] = std::exchange(thought, {});
    if (open != none) messages.push_back(std::exchange(open, none));
  };
  for (const Json& block : content) {
    const BlockKind& kind = KindOf("messages", block, lenient);
    if (!kind.role.empty() && message["role"] != kind.role) {
      Throw(ErrorKind::kInput, "\"messages\": expected blocks {} in messages of the {}",
            Quote(kind.type), kind.role);
    }
    if (kind.type == "text") {
      open["content"].push_back({{"type", "text"}, {"text", block["text"]}});
    } else if (kind.type == "thinking") {
      thought += block["thinking"].get_ref<const std::string&>();
    } else if (kind.type == "tool_use") {
      Json& calls = open["tool_calls"];
      if (calls.is_null()) calls = Json::array();
      calls.push_back(CallOf(block));
    } else {
      close();
      messages.push_back(ResultOf(block, lenient));
    }
  }
  close();
  if (messages.size() == before) messages.push_back(none);
}

}  // namespace

Json ChatMessagesOfAnthropic(const Json& system, const Json& messages, bool lenient) {
  if (!messages.is_array() || messages.empty()) {
    RefuseField("messages", "a list of messages", messages);
  }
  Json list = Json::array();
  if (!system.is_null()) {
    list.push_back({{"role", "system"}, {"content", TextsOf("system", system, lenient)}});
  }
  for (const Json& message : messages) AddMessages(message, lenient, list);
  return list;
}

Json ChatToolsOfAnthropic(const Json& tools, bool lenient) {
  if (!tools.is_array()) RefuseField("tools", "a list of tools", tools);
  // Arguments are always streamed as they are written, so "eager_input_streaming" changes nothing.
  constexpr std::array<std::string_view, 5> kNames = {"name", "description", "input_schema",
                                                      "strict", "eager_input_streaming"};
  Json list = Json::array();
  for (const Json& tool : tools) {
    const Json type = tool.is_object() ? tool.value("type", Json()) : Json();
    if (!tool.is_object() || (!type.is_null() && type != "custom")) {
      RefuseField("tools",
                  R"(tools {"name": "...", "input_schema": {...}}, which the client calls itself)",
                  tool);
    }
    CheckNames("tools", tool, lenient, kNames);
    Json function{{"name", tool.value("name", Json())}};
    for (const auto& [name, own] :
         {std::pair("description", "description"), std::pair("input_schema", "parameters"),
          std::pair("strict", "strict")}) {
      const Json value = tool.value(name, Json());
      if (!value.is_null()) function[own] = value;
    }
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return list;
}

}  // namespace godwit::chat
