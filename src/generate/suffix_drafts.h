// SuffixDrafts: draft tokens from the text itself, prompt and output. They are tokens that have
// followed its last tokens before, by how often, how lately and after how long a match (arXiv
// 2304.04487, 2411.04975). TokenSwift takes the most frequent 4-grams (arXiv 2502.18890, section
// 3.4).
#pragma once

#include <vector>

#include "generate/draft_source.h"
#include "generate/suffix_index.h"

namespace godwit {

class SuffixDrafts : public DraftSource {
 public:
  SuffixDrafts();
  std::string_view name() const override { return "ngram"; }
  std::span<const double> Priors() const override { return priors_; }
  void Follow(std::span<const int32_t> text) override { index_.Extend(text); }
  void Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
             std::vector<DraftOffer>& offers) override;

 private:
  using Matches = std::vector<SuffixIndex::Match>;
  struct Follower {
    int32_t token;
    int32_t longest;
    int32_t count;
    double weight;
  };

  std::vector<double> priors_;
  SuffixIndex index_;
  std::vector<Matches> matches_;  // of the tree's nodes
  std::vector<Follower> followers_;
};

}  // namespace godwit
