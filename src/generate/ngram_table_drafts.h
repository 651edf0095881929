// NgramTableDrafts: draft tokens as TokenSwift takes them from the text (arXiv 2502.18890, section
// 3.2, "token reutilization"): of all n-grams of the text, the k most frequent ones that begin with
// its last token. SuffixDrafts is our own way. The paper counts the output alone, and this table
// the prompt, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "generate/draft_source.h"

namespace godwit {

class NgramTableDrafts : public DraftSource {
 public:
  static constexpr int64_t kMaxTokens = 8, kMaxOffered = 64;
  struct Options {
    int64_t n = 4;    // tokens of an n-gram, 2 to kMaxTokens
    int64_t k = 20;   // n-grams that are offered, 1 to kMaxOffered
    int64_t lag = 0;  // the last tokens of the text, of which no n-gram is counted yet
  };
  explicit NgramTableDrafts(const Options& options) : options_(options) {}

  std::string_view name() const override { return "ngram-table"; }
  std::span<const double> Priors() const override { return kPriors; }
  // Counts new n-grams, in time proportional to new tokens times k. Some 100 bytes for each
  // different n-gram. A shorter text begins the table anew.
  void Follow(std::span<const int32_t> text) override;
  void Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
             std::vector<DraftOffer>& offers) override;

 private:
  // Kinds by rank (1, 2, 3 to 4, 5 to 8, more), of the first draft token and of later ones.
  static constexpr int32_t kRanks = 5;
  static constexpr std::array kPriors = {0.3, 0.2, 0.1, 0.05, 0.02, 0.6, 0.5, 0.4, 0.3, 0.2};

  using Ngram = std::array<int32_t, kMaxTokens>;  // the first n count, the others are 0
  struct Hash {
    size_t operator()(const Ngram& ngram) const;
  };
  using Counts = std::unordered_map<Ngram, int64_t, Hash>;

  void Count(const Ngram& ngram);

  Options options_;
  int64_t counted_ = 0;  // tokens that end a counted n-gram, or are before the first such
  Counts counts_;
  // The k most frequent n-grams by their first token, the most frequent first. Among equals, the
  // one that reached its count first.
  std::unordered_map<int32_t, std::vector<const Counts::value_type*>> best_;
};

}  // namespace godwit
