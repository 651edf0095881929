#include "generate/draft_texts.h"

#include <algorithm>
#include <utility>

namespace godwit {
namespace {

int64_t CommonTokens(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

}  // namespace

void DraftTexts::Keep(const std::string& key, std::vector<int32_t> tokens,
                      std::unique_ptr<TextCache> cache) {
  std::vector<Text> dropped;  // after the lock
  const std::lock_guard lock(mutex_);
  const auto is_beginning = [&](const Text& text) {
    return text.key == key && CommonTokens(text.tokens, tokens) == std::ssize(text.tokens);
  };
  for (Text& text : texts_) {
    if (is_beginning(text)) dropped.push_back(std::move(text));
  }
  std::erase_if(texts_, [](const Text& text) { return text.cache == nullptr; });
  texts_.push_back({.key = key, .tokens = std::move(tokens), .cache = std::move(cache)});
  if (texts_.size() <= kMost) return;
  dropped.push_back(std::move(texts_.front()));
  texts_.erase(texts_.begin());
}

std::unique_ptr<TextCache> DraftTexts::Fork(const std::string& key,
                                            std::span<const int32_t> tokens) {
  const std::lock_guard lock(mutex_);
  int64_t most = 0;
  auto best = texts_.end();
  for (auto text = texts_.begin(); text != texts_.end(); ++text) {
    if (text->key != key) continue;
    const int64_t usable =
        text->cache->RestartPoint(CommonTokens(text->tokens, tokens), /*answer=*/INT64_MAX);
    if (usable <= most) continue;
    most = usable;
    best = text;
  }
  if (best == texts_.end()) return nullptr;
  std::rotate(best, best + 1, texts_.end());
  auto fork = texts_.back().cache->Fork();
  fork->Truncate(most);
  return fork;
}

bool DraftTexts::Drop() {
  Text dropped;  // after the lock
  const std::lock_guard lock(mutex_);
  if (texts_.empty()) return false;
  dropped = std::move(texts_.front());
  texts_.erase(texts_.begin());
  return true;
}

}  // namespace godwit
