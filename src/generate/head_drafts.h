// HeadDrafts: draft tokens by trained heads, from the state out of which the last token was chosen
// (draft_heads.h). Heads know nothing of that token or of each other's drafts: a head makes the
// same offers behind every node of its depth.
#pragma once

#include <memory>
#include <vector>

#include "base/stopwatch.h"
#include "generate/draft_source.h"
#include "model/draft_heads.h"

namespace godwit {

// HeadBatch: the heads' offers for all texts of a step, together. The heads' matrices and the
// output head are read once for all of them. For one thread.
class HeadBatch {
 public:
  // The offers for one text.
  struct TextOffers {
    std::vector<std::vector<DraftOffer>> offers;  // [heads], likeliest first
    size_t length = 0;                            // length of the text that they continue
  };

  // now_ms: the clock that measures the heads.
  HeadBatch(std::shared_ptr<const DraftHeads> heads, NowMs now_ms);

  int64_t heads() const { return heads_->count(); }
  // Adds a text: the next Compute makes its offers from this state [hidden], before the final norm.
  void Add(std::shared_ptr<TextOffers> draft_tokens, std::span<const float> state);
  // Computes the offers of all texts that wait; later calls in the same step find none left.
  // Returns one text's share of the time, in ms.
  double Compute(const LanguageModel& model, const Exec& exec);

 private:
  std::shared_ptr<const DraftHeads> heads_;
  NowMs now_ms_;
  std::vector<std::shared_ptr<TextOffers>> waiting_, computed_;
  std::vector<float> states_;  // [waiting, hidden]
  double share_ms_ = 0;
};

class HeadDrafts : public DraftSource {
 public:
  explicit HeadDrafts(std::shared_ptr<HeadBatch> batch);
  std::string_view name() const override { return "heads"; }
  std::span<const double> Priors() const override { return priors_; }
  void Follow(std::span<const int32_t> /*text*/) override {}
  void Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
             std::vector<DraftOffer>& offers) override;
  void ContinueFrom(const Sequence& sequence, const Outcome& outcome, int64_t row) override;
  double EndStep(const LanguageModel& model, const Exec& exec) override;

 private:
  std::shared_ptr<HeadBatch> batch_;
  std::shared_ptr<HeadBatch::TextOffers> draft_tokens_;
  std::vector<double> priors_;  // [heads * classes of probability]
};

}  // namespace godwit
