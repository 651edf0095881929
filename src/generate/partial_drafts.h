// PartialDrafts: draft tokens by the model itself. It reads its own tokens one after the other and
// sees a part of the text's cache, as a policy shows it. Sources: TriForce (arXiv 2404.11912); in
// TokenSwift (arXiv 2502.18890), section 3.3. The verifying step then reads all of the cache, once
// for all draft tokens.
//
// The part is seen through a fork of the text's cache. Before each chain the fork goes on as the
// text has: with the verified keys, and the policy's index of them.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/stopwatch.h"
#include "generate/draft_source.h"
#include "generate/hit_rate.h"
#include "generate/step_costs.h"

namespace godwit {

class PartialDrafts : public DraftSource {
 public:
  static constexpr int64_t kMaxDraftTokens = 8;

  // policy: of the text's model; it shows the part. min_tokens: shorter texts have no draft
  // tokens. now_ms: the clock that measures the drafts; 0: they take nothing.
  PartialDrafts(std::unique_ptr<AttentionPolicy> policy, int64_t min_tokens, NowMs now_ms);

  std::string_view name() const override { return "partial"; }
  std::span<const double> Priors() const override { return kPriors; }
  void Follow(std::span<const int32_t> /*text*/) override {}
  void Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
             std::vector<DraftOffer>& offers) override;
  // Makes the next chain, of the length with the most tokens for the time that it and the step
  // take. A failure ends this chain and those after it, and nothing else.
  void ContinueFrom(const Sequence& sequence, const Outcome& outcome, int64_t row) override;
  double once_ms() const override { return index_ms_.value_or(0); }
  bool ReleaseMemory() override;

 private:
  // Kinds of draft tokens by their lead over the likeliest other token, which is offered, too.
  static constexpr std::array kLeads = {0.5f, 1.5f, 3.0f, 6.0f};
  static constexpr std::array kPriors = {0.4, 0.6, 0.75, 0.9, 0.97, 0.3, 0.2, 0.1, 0.05, 0.02};
  struct DraftToken {
    int32_t token, kind;
    int32_t other, other_kind;  // -1: there is none
  };
  // The expected value of chains for a step that has so many rows of other texts.
  struct ChainForecast {
    int64_t others, most;
    double chance;         // of a draft token behind right ones
    double tokens_per_ms;  // of the best length
    bool pays;
  };

  void CountHits(std::span<const int32_t> text);
  ChainForecast Predict(const Sequence& sequence, const Outcome& outcome) const;
  double StepMs(const ChainForecast& forecast, int64_t draft_tokens) const;
  bool GoesOn(const ChainForecast& forecast, double reach) const;
  void ContinueAs(const Sequence& sequence);
  void Draft(const Sequence& sequence, const Outcome& outcome, const ChainForecast& forecast);
  void Add(int32_t token, std::span<const float> logits);

  std::unique_ptr<AttentionPolicy> policy_;
  int64_t min_tokens_;
  NowMs now_ms_;
  bool released_ = false;
  std::optional<Sequence> draft_;  // the text, and draft tokens
  int64_t text_tokens_ = 0;        // tokens of the text when the drafts were made
  std::vector<DraftToken> draft_tokens_;
  std::vector<int32_t> chain_;      // nodes of draft_tokens_ in the tree
  int64_t idle_steps_ = 0;          // steps in which no draft token would have paid
  std::optional<double> index_ms_;  // time that making the index took

  StepCosts costs_;                       // of steps
  std::array<StepCosts, 2> draft_costs_;  // of a chain's first row, and of a later one
  HitRate all_;
  std::array<HitRate, kPriors.size()> rates_;
};

}  // namespace godwit
