#include "chat/files_in_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/split_text.h"

namespace godwit::chat {

std::string FileInMessage(std::string_view name, std::string_view text) {
  std::string plain(name);
  std::ranges::replace_if(
      plain, [](char c) { return c == '"' || c == '\r' || c == '\n'; }, '\'');
  return fmt::format("<file name=\"{}\">\n{}{}</file>\n\n", plain, text,
                     text.ends_with('\n') ? "" : "\n");
}

std::optional<int64_t> TokensFrom(
    std::string_view question, std::string_view prompt,
    const std::function<std::vector<int32_t>(std::string_view text)>& tokenize) {
  question = Stripped(question);
  const size_t begin = prompt.rfind(question);
  if (question.empty() || begin == std::string_view::npos) return std::nullopt;
  return std::max<int64_t>(1, std::ssize(tokenize(prompt.substr(begin))));
}

}  // namespace godwit::chat
