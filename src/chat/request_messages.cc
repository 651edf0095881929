#include "chat/request_messages.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "chat/json_fields.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

// The text of a content, which is a text or a list of text parts.
std::string Content(const Json& value) {
  if (!value.is_array()) return Text(value);
  std::string content;
  for (const Json& part : value) {
    RefuseMedia(part);
    const bool is_text = part.is_object() && part.size() == 2 && part.contains("text") &&
                         part["text"].is_string() && part.value("type", Json()) == "text";
    if (!is_text) Refuse(R"(parts {"type": "text", "text": "..."})", part);
    if (&part != &value.front()) content += '\n';
    content += part["text"].get_ref<const std::string&>();
  }
  return content;
}

// A call in the older form, without a list.
Json PastCall(const Json& value) {
  if (!value.is_object()) Refuse(R"("function_call" {"name": "...", "arguments": "..."})", value);
  return Json::array({{{"type", "function"}, {"function", value}}});
}

// The object that the text spells; otherwise the text.
Json ObjectOr(Json text) {
  try {
    Json object = ParseOrderedJson(text.get_ref<const std::string&>(), "arguments");
    if (object.is_object()) return object;
  } catch (const Error&) {
    // The text stays text if it nests too deeply, too.
  }
  return text;
}

// An assistant's calls. The API has their arguments as text; templates expect an object.
Json PastCalls(const Json& value) {
  if (!value.is_array()) Refuse("a list of \"tool_calls\"", value);
  Json calls = value;
  for (Json& call : calls) {
    if (!call.is_object() || !call.value("function", Json()).is_object() ||
        !call["function"].value("name", Json()).is_string()) {
      Refuse(R"("tool_calls" {"id": "...", "function": {"name": "...", "arguments": "..."}})",
             call);
    }
    Json& arguments = call["function"]["arguments"];
    if (arguments.is_string()) arguments = ObjectOr(std::move(arguments));
    if (arguments.is_null()) arguments = Json::object();
  }
  return calls;
}

Message ParseMessage(const Json& value, bool lenient) {
  if (!value.is_object()) Refuse("messages that are objects", value);
  Message message;
  Json fields = Json::object();
  for (const auto& [key, part] : value.items()) {
    if (key == "role") {
      // "function" is the older name of the role; templates know the newer one.
      message.role = Text(part) == "function" ? "tool" : Text(part);
    } else if (part.is_null()) {
      continue;
    } else if (key == "content") {
      message.content = Content(part);
    } else if (key == "tool_calls") {
      fields[key] = PastCalls(part);
    } else if (key == "function_call") {
      fields["tool_calls"] = PastCalls(PastCall(part));
    } else if (key == "tool_call_id" || key == "name" || key == "reasoning_content") {
      fields[key] = Text(part);
    } else if (!lenient) {
      Throw(ErrorKind::kInput,
            "expected messages of \"role\" and \"content\", found {}; --lenient ignores it",
            Quote(key));
    }
  }
  if (!value.contains("role")) Throw(ErrorKind::kInput, "found a message without \"role\"");
  if (value.value("content", Json()).is_null() && !fields.contains("tool_calls")) {
    Throw(ErrorKind::kInput, "found a message without \"content\"");
  }
  // gpt-oss's template has this name for reasoning, and refuses both it and a text beside calls.
  if (fields.contains("reasoning_content") &&
      (message.content.empty() || !fields.contains("tool_calls"))) {
    fields["thinking"] = fields["reasoning_content"];
  }
  if (!fields.empty()) message.fields = DumpJson(fields);
  return message;
}

}  // namespace

void RefuseMedia(const Json& part) {
  const Json type = part.is_object() ? part.value("type", Json()) : Json();
  if (!type.is_string()) return;
  const std::string& name = type.get_ref<const std::string&>();
  for (const char* const kind : {"image", "audio", "video", "file", "document"}) {
    if (name.find(kind) == name.npos) continue;
    Throw(ErrorKind::kInput,
          "pictures, sounds and files are not supported: the model reads text, so send their "
          "content as text");
  }
}

std::vector<Message> ParseMessages(const Json& value, bool lenient) {
  if (!value.is_array() || value.empty()) Refuse("a list of messages", value);
  std::vector<Message> messages;
  for (const Json& message : value) messages.push_back(ParseMessage(message, lenient));
  return messages;
}

}  // namespace godwit::chat
