#include "text/score_merges.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/utf8.h"

namespace godwit {

std::vector<ScoreMerge> MergesByScore(const std::unordered_map<std::string_view, int32_t>& ids,
                                      const std::vector<VocabularyToken>& tokens, size_t max_bytes,
                                      std::string_view what) {
  std::vector<ScoreMerge> merges;
  size_t bytes = 0;
  for (const auto& [text, whole] : ids) {
    if (text.size() > kMaxMergedBytes) continue;
    for (size_t at = 1; at < text.size(); ++at) {
      if (ContinuesCharacter(text[at])) continue;
      const auto left = ids.find(text.substr(0, at));
      if (left == ids.end()) continue;
      const auto right = ids.find(text.substr(at));
      if (right == ids.end()) continue;
      bytes += text.size();
      if (bytes > max_bytes) {
        Throw(ErrorKind::kFormat, "{}: its scores allow merges of more than {} bytes", what,
              max_bytes);
      }
      merges.push_back({left->second, right->second, whole});
    }
  }
  const auto score = [&](int32_t id) {
    const auto at = static_cast<size_t>(id);
    return at < tokens.size() ? tokens[at].score : 0.0F;
  };
  std::ranges::sort(merges, {}, [&](const ScoreMerge& merge) {
    return std::tuple(-score(merge.whole), merge.whole, merge.left, merge.right);
  });
  return merges;
}

}  // namespace godwit
