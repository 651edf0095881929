#include "chat/continued_message.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace godwit::chat {
namespace {

// A word that is in no message, and that no template would change.
std::string EndMark(std::span<const Message> messages) {
  std::string mark = "GodwitGoesOnHere";
  const auto has = [&](const Message& message) {
    return message.content.find(mark) != std::string::npos;
  };
  while (std::ranges::any_of(messages, has)) mark += 'X';
  return mark;
}

}  // namespace

std::string RenderOpen(const Engine& engine, std::span<const Message> messages, bool continues,
                       std::string_view template_variables, std::string_view tools) {
  if (!continues) return engine.ApplyChatTemplate(messages, true, template_variables, tools);
  if (messages.back().content.find_first_not_of(" \t\r\n") == std::string::npos) {
    return engine.ApplyChatTemplate(messages.first(messages.size() - 1), true, template_variables,
                                    tools);
  }
  const std::string mark = EndMark(messages);
  std::vector<Message> marked(messages.begin(), messages.end());
  marked.back().content += mark;
  std::string text = engine.ApplyChatTemplate(marked, false, template_variables, tools);
  const size_t end = text.find(mark);
  if (end == text.npos || text.find(mark, end + 1) != text.npos) {
    Throw(ErrorKind::kUnsupported,
          "this model's chat template changes the last message of the assistant, so it cannot be "
          "continued");
  }
  text.resize(end);
  return text;
}

}  // namespace godwit::chat
