#include "engine/render_chat.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"

namespace godwit {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

// The part of a message that is searched for. Templates strip blanks from its ends.
std::string_view BeginningOf(std::string_view content) {
  constexpr size_t kMaxBytes = 256;  // searching a long text in a longer one can take very long
  content.remove_prefix(std::min(content.find_first_not_of(" \t\r\n"), content.size()));
  content = content.substr(0, kMaxBytes);
  return content.substr(0, content.find_last_not_of(" \t\r\n") + 1);
}

constexpr std::string_view kOtherWords = "These are other words.";

// Whether `text`, which a template renders from the messages, stays the same with other words in
// one message, and without it. godwit's own template for stories reads "Tell me a story." and
// writes nothing of it.
bool Ignores(const ChatTemplate& chat_template, ChatInput input, size_t message,
             std::string_view text) {
  input.messages[message]["content"] = kOtherWords;
  if (chat_template.Render(input) != text) return false;
  input.messages.erase(message);
  return chat_template.Render(input) == text;
}

// Whether a message is ignored whatever follows it. Later words may make a template forget.
bool IsLost(const ChatTemplate& chat_template, ChatInput input, size_t message,
            std::string_view text) {
  try {
    if (!Ignores(chat_template, input, message, text)) return false;
    if (message + 1 == input.messages.size()) return true;
    for (size_t i = message + 1; i < input.messages.size(); ++i) {
      input.messages[i]["content"] = kOtherWords;
    }
    return Ignores(chat_template, input, message, chat_template.Render(input));
  } catch (const Error&) {
    return false;  // it needs the message
  }
}

// Templates treat a message by its role, and by being the first or the last. So the first and last
// message of each role are checked. Many templates rewrite a content (as JSON, without its
// reasoning), so a message that is not found is changed on trial.
void RefuseLostMessages(const ChatTemplate& chat_template, const ChatInput& input,
                        std::span<const Message> messages, std::string_view text) {
  std::map<std::string_view, std::pair<size_t, size_t>> first_and_last;
  for (size_t i = 0; i < messages.size(); ++i) {
    first_and_last.try_emplace(messages[i].role, i, i).first->second.second = i;
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto [first, last] = first_and_last.at(messages[i].role);
    const std::string_view begin = BeginningOf(messages[i].content);
    if ((i != first && i != last) || begin.empty() || text.find(begin) != text.npos) continue;
    if (!IsLost(chat_template, input, i, text)) continue;
    Throw(
        ErrorKind::kInput,
        "message {} of the role {} would be lost, because this model's chat template leaves it out",
        i + 1, Quote(messages[i].role));
  }
}

// Renders the input. A template that fails on arguments that are objects gets them as text, and so
// does `input`.
std::string RenderWithArguments(const ChatTemplate& chat_template, ChatInput& input) {
  try {
    return chat_template.Render(input);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kFormat) throw;
    ChatInput spelled = input;
    if (!SpellArguments(spelled.messages)) throw;
    std::string text;
    try {
      text = chat_template.Render(spelled);
    } catch (const Error&) {
      throw error;  // the reason is another one
    }
    input = std::move(spelled);
    return text;
  }
}

}  // namespace

std::string RenderChat(const ChatTemplate& chat_template, std::span<const Message> messages,
                       ChatInput input) {
  for (const Message& message : messages) {
    std::string role = message.role;
    const bool is_named = chat_template.Names(role);
    if (!is_named && std::ranges::find(kRoles, role) == kRoles.end()) {
      Throw(ErrorKind::kInput,
            "message {}: expected the role \"system\", \"developer\", \"user\", \"assistant\" or "
            "\"tool\", or another role of the model's chat template",
            input.messages.size() + 1);
    }
    if (role == "developer" && !is_named) role = "system";
    ordered_json fields{{"role", std::move(role)}, {"content", message.content}};
    if (!message.fields.empty()) fields.update(ParseOrderedJson(message.fields, "a message"));
    input.messages.push_back(std::move(fields));
  }
  std::string text = RenderWithArguments(chat_template, input);
  RefuseLostMessages(chat_template, input, messages, text);
  return text;
}

}  // namespace godwit
