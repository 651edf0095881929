#include "chat/passages.h"

#include "base/error.h"

namespace godwit::chat {

JoinedPassages Join(const PassagePrompt& prompt) {
  JoinedPassages joined{.tokens = prompt.head, .ends = {}};
  const auto append = [&](const std::vector<int32_t>& part) {
    joined.ends.push_back(std::ssize(joined.tokens));
    joined.tokens.insert(joined.tokens.end(), part.begin(), part.end());
  };
  for (const auto& passage : prompt.passages) append(passage);
  append(prompt.rest);
  return joined;
}

PassagePrompt CutAtPassages(
    std::string_view prompt, std::span<const std::string> passages,
    const std::function<std::vector<int32_t>(std::string_view text)>& tokenize) {
  std::string all;
  for (const std::string& passage : passages) all += passage;
  const size_t begin = prompt.find(all);
  if (begin == std::string_view::npos || begin == 0) {
    Throw(ErrorKind::kUnsupported,
          "the model's chat template rewrites the message or puts nothing before it, so that "
          "passages cannot be told apart: ask without passages");
  }
  PassagePrompt cut{.head = tokenize(prompt.substr(0, begin))};
  for (const std::string& passage : passages) cut.passages.push_back(tokenize(passage));
  cut.rest = tokenize(prompt.substr(begin + all.size()));
  return cut;
}

}  // namespace godwit::chat
