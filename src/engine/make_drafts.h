// The sources of guesses that GenerateOptions::draft names.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generate/draft_source.h"
#include "model/draft_heads.h"

namespace godwit {

// Those in the model's folder. digest: Decoder::StatesDigest; storage: of the model's layers.
// Throws Error(kInput) where there are none (kNoDraftHeads), and what ReadDraftHeads throws.
std::shared_ptr<const DraftHeads> LoadDraftHeads(const std::string& folder,
                                                 const LanguageModel& model, uint64_t digest,
                                                 ThreadPool& pool, DType storage);

// names: "ngram", "heads", several with commas between. heads: of the model; called where they are
// named. Throws what that throws, and Error(kInput) for other names and for one that comes twice.
std::vector<std::unique_ptr<DraftSource>> MakeDrafts(
    std::string_view names, int64_t vocab,
    const std::function<std::shared_ptr<const DraftHeads>()>& heads);

}  // namespace godwit
