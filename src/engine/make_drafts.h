// The sources of guesses that GenerateOptions::draft names.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "generate/draft_source.h"
#include "model/draft_heads.h"

namespace godwit {

// names: "ngram", "heads", several with commas between. heads: of the model; called where they are
// named. Throws what that throws, and Error(kInput) for other names and for one that comes twice.
std::vector<std::unique_ptr<DraftSource>> MakeDrafts(
    std::string_view names, int64_t vocab,
    const std::function<std::shared_ptr<const DraftHeads>()>& heads);

}  // namespace godwit
