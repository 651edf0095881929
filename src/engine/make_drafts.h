// The sources of guesses that GenerateOptions::draft names.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "generate/draft_source.h"

namespace godwit {

// names: "ngram", several with commas between. Throws Error(kInput) for others and for one that
// comes twice.
std::vector<std::unique_ptr<DraftSource>> MakeDrafts(std::string_view names, int64_t vocab);

}  // namespace godwit
