#include "engine/make_drafts.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/quote.h"
#include "generate/recycled_drafts.h"
#include "generate/suffix_drafts.h"

namespace godwit {

std::vector<std::unique_ptr<DraftSource>> MakeDrafts(std::string_view names, int64_t vocab) {
  std::vector<std::unique_ptr<DraftSource>> sources;
  bool ngram = false;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.size(), names.find(',', begin));
    const std::string_view name = names.substr(begin, end - begin);
    begin = end + 1;
    if (name != "ngram") {
      Throw(ErrorKind::kInput, "unknown source of drafts {}; there is: ngram", Quote(name));
    }
    if (ngram) Throw(ErrorKind::kInput, "the source of drafts {} is named twice", Quote(name));
    ngram = true;
    sources.push_back(std::make_unique<SuffixDrafts>());
    sources.push_back(std::make_unique<RecycledDrafts>(vocab));
  }
  return sources;
}

}  // namespace godwit
