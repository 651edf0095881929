#include "chat/conversation_file.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quote.h"
#include "chat/thought_fields.h"

namespace godwit::chat {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = size_t{64} << 20;

constexpr const char* kThought = "reasoning_content";

nlohmann::ordered_json MessageJson(const std::string& role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

Message ParseMessage(const json& entry, const std::string& where) {
  if (!entry.is_object()) Throw(ErrorKind::kFormat, "{} must be an object", where);
  Message message;
  for (const auto& [key, value] : entry.items()) {
    const bool is_thought = key == kThought && entry.value("role", json()) == "assistant";
    if (key != "role" && key != "content" && !is_thought) {
      if (value.is_null()) continue;
      Throw(ErrorKind::kFormat, "{} has the field {}, which godwit chat does not support", where,
            Quote(key));
    }
    if (!value.is_string()) Throw(ErrorKind::kFormat, "{}: {} must be text", where, Quote(key));
    if (is_thought) {
      message.fields = ThoughtFields(value.get<std::string>());
    } else {
      (key == "role" ? message.role : message.content) = value.get<std::string>();
    }
  }
  for (const char* key : {"role", "content"}) {
    if (!entry.contains(key)) Throw(ErrorKind::kFormat, "{} has no {}", where, Quote(key));
  }
  return message;
}

}  // namespace

std::string ToJson(const SavedConversation& conversation) {
  auto messages = nlohmann::ordered_json::array();
  if (conversation.system) messages.push_back(MessageJson("system", *conversation.system));
  for (const Message& message : conversation.messages) {
    messages.push_back(MessageJson(message.role, message.content));
    const std::string thought = ThoughtIn(message.fields);
    if (!thought.empty()) messages.back()[kThought] = thought;
  }
  return DumpJson(nlohmann::ordered_json{{"messages", messages}}, /*indent=*/2) + "\n";
}

SavedConversation ParseConversation(std::string_view text, std::string_view what) {
  const json root = ParseJson(text, what);
  if (!root.is_object() || !root.contains("messages") || !root["messages"].is_array()) {
    Throw(ErrorKind::kFormat, "{}: expected an object with a list of \"messages\"", what);
  }
  SavedConversation conversation;
  size_t number = 0;
  for (const json& entry : root["messages"]) {
    const std::string where = fmt::format("{}: message {}", what, ++number);
    Message message = ParseMessage(entry, where);
    if (number == 1 && message.role == "system") {
      conversation.system = std::move(message.content);
      continue;
    }
    const char* const turn = conversation.messages.size() % 2 == 0 ? "user" : "assistant";
    if (message.role != turn) {
      Throw(ErrorKind::kFormat, "{} has the role {}, expected {}", where, Quote(message.role),
            Quote(turn));
    }
    conversation.messages.push_back(std::move(message));
  }
  if (conversation.messages.size() % 2 != 0) {
    Throw(ErrorKind::kFormat, "{}: the last question has no answer", what);
  }
  return conversation;
}

SavedConversation ReadConversation(const std::string& path) {
  return ParseConversation(ReadTextFile(path, kMaxBytes), path);
}

}  // namespace godwit::chat
