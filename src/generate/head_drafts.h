// Guesses by trained heads, from the state out of which the last token was chosen (draft_heads.h).
// They know nothing of that token or of each other's guesses: what a head offers, it offers behind
// every node of its depth.
#pragma once

#include <memory>
#include <vector>

#include "generate/draft_source.h"
#include "model/draft_heads.h"

namespace godwit {

class HeadDrafts : public DraftSource {
 public:
  explicit HeadDrafts(std::shared_ptr<const DraftHeads> heads);
  std::string_view name() const override { return "heads"; }
  std::span<const double> Priors() const override { return priors_; }
  void Follow(std::span<const int32_t> /*text*/) override {}
  void Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
             std::vector<DraftOffer>& offers) override;
  void GoOnFrom(const Sequence& sequence, const Outcome& outcome, int64_t row) override;

 private:
  std::shared_ptr<const DraftHeads> heads_;
  std::vector<double> priors_;                   // [heads * classes of probability]
  std::vector<std::vector<DraftOffer>> offers_;  // [heads], likeliest first
  size_t length_ = 0;                            // of the text that they continue
};

}  // namespace godwit
