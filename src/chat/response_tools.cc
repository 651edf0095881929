#include "chat/response_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/quote.h"
#include "chat/json_fields.h"
#include "chat/request_messages.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

bool IsType(const Json& item, std::string_view type) {
  return item.is_object() && item.value("type", Json()) == type;
}

// The parts of a message, in a chat's form.
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

// A message of the input: a client's own, or one of an earlier answer.
Json MessageOfItem(const Json& item) {
  if (!item.is_object() || item.value("type", Json("message")) != "message") {
    RefuseField("input", "a text or a list of messages, function calls and their outputs", item);
  }
  for (const char* const key : {"role", "content"}) {
    if (!item.contains(key)) RefuseField("input", "messages of \"role\" and \"content\"", item);
  }
  return {{"role", item["role"]}, {"content", PartsOf(item["content"])}};
}

const std::string& TextField(const Json& item, const char* key) {
  const auto found = item.find(key);
  if (found == item.end() || !found->is_string()) {
    RefuseField("input",
                fmt::format("a {} with a text {}", item["type"].get<std::string>(), Quote(key)),
                item);
  }
  return found->get_ref<const std::string&>();
}

Json CallOfItem(const Json& item) {
  return {{"id", TextField(item, "call_id")},
          {"type", "function"},
          {"function",
           {{"name", TextField(item, "name")}, {"arguments", TextField(item, "arguments")}}}};
}

// The texts of an answer's reasoning.
std::string ThoughtOf(const Json& item) {
  std::string thought;
  for (const char* const key : {"content", "summary"}) {
    const Json parts = item.value(key, Json());
    if (!parts.is_array() || !thought.empty()) continue;
    for (const Json& part : parts) {
      if (!part.is_object() || !part.value("text", Json()).is_string()) {
        RefuseField("input", R"(reasoning of {"type": "reasoning_text", "text": "..."})", part);
      }
      thought += part["text"].get_ref<const std::string&>();
    }
  }
  return thought;
}

}  // namespace

Json ChatToolsOf(const Json& tools) {
  if (!tools.is_array()) RefuseField("tools", "a list of tools", tools);
  Json list = Json::array();
  for (const Json& tool : tools) {
    if (!IsType(tool, "function") || tool.contains("function")) {
      RefuseField("tools", R"(tools {"type": "function", "name": "...", "parameters": {...}})",
                  tool);
    }
    Json function = tool;
    function.erase("type");
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return list;
}

Json ChatToolChoiceOf(const Json& choice) {
  if (!choice.is_object()) return choice;
  if (!IsType(choice, "function") || choice.size() != 2 || !choice.contains("name")) {
    RefuseField("tool_choice",
                R"("auto", "none", "required" or {"type": "function", "name": "..."})", choice);
  }
  return {{"type", "function"}, {"function", {{"name", choice["name"]}}}};
}

Json ChatMessagesOf(const Json& items) {
  Json messages = Json::array();
  std::string thought;
  bool goes_on = false;  // the last message is an assistant's and may get calls
  const auto add = [&](Json message) {
    const bool answers = message.value("role", Json()) == "assistant";
    if (answers && !thought.empty()) message["reasoning_content"] = std::exchange(thought, {});
    messages.push_back(std::move(message));
    goes_on = answers;
  };
  for (const Json& item : items) {
    if (IsType(item, "reasoning")) {
      thought += ThoughtOf(item);
      goes_on = false;
    } else if (IsType(item, "function_call")) {
      if (!goes_on) add({{"role", "assistant"}, {"content", nullptr}});
      Json& calls = messages.back()["tool_calls"];
      if (calls.is_null()) calls = Json::array();
      calls.push_back(CallOfItem(item));
    } else if (IsType(item, "function_call_output")) {
      const auto output = item.find("output");
      if (output == item.end()) {
        RefuseField("input", "a function_call_output with \"output\"", item);
      }
      add({{"role", "tool"},
           {"tool_call_id", TextField(item, "call_id")},
           {"content", PartsOf(*output)}});
    } else {
      add(MessageOfItem(item));
    }
  }
  if (!thought.empty()) {
    RefuseField("input", "an answer or a function call after reasoning", items.back());
  }
  return messages;
}

}  // namespace godwit::chat
