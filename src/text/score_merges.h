// The merges of SentencePiece's BPE, which keeps a score for each token instead. Two neighbours may
// merge if they make a token. The pair that makes the one with the highest score merges first.
//
// Internal to src/text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/vocabulary.h"

namespace godwit {

struct ScoreMerge {
  int32_t left, right, whole;  // ids
};

// Returns the merges in the order in which they are applied: by score, then by ids of whole, left
// and right. That is the order in published files (Llama 2's, Mistral's, Phi-3's, to the last of
// their 60,000 pairs). ids: of the texts; tokens: of the scores; those behind have 0. Throws
// Error(kFormat) where the merges take more than max_bytes of text. Takes time in proportion to the
// text times kMaxMergedBytes.
std::vector<ScoreMerge> MergesByScore(const std::unordered_map<std::string_view, int32_t>& ids,
                                      const std::vector<VocabularyToken>& tokens, size_t max_bytes,
                                      std::string_view what);

// Eight times the longest known. A token with more is not made by merging.
inline constexpr size_t kMaxMergedBytes = 256;

}  // namespace godwit
