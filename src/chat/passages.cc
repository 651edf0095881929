#include "chat/passages.h"

#include "base/error.h"

namespace godwit::chat {

PassagePrompt CutAtPassages(
    std::string_view prompt, std::span<const std::string> passages,
    const std::function<std::vector<int32_t>(std::string_view text)>& tokenize) {
  PassagePrompt cut;
  size_t end = 0;  // of what is cut
  for (const std::string& passage : passages) {
    const size_t at = prompt.find(passage, end);
    const bool is_first = cut.passages.empty();
    if (at == std::string_view::npos || (is_first && at == 0) || (!is_first && at != end)) {
      Throw(ErrorKind::kUnsupported,
            "the model's chat template rewrites the message or puts nothing before it, so that "
            "passages cannot be told apart: leave --passages out");
    }
    if (is_first) cut.head = tokenize(prompt.substr(0, at));
    cut.passages.push_back(tokenize(passage));
    end = at + passage.size();
  }
  cut.rest = tokenize(prompt.substr(end));
  return cut;
}

}  // namespace godwit::chat
