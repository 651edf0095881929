// ChainDrafts: draft tokens that a model makes one after the other behind the text. It is the
// common part of sources that run a model or a part of one. A chain has the length that yields the
// most tokens for the time that it and the step take.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/function_ref.h"
#include "base/stopwatch.h"
#include "generate/draft_source.h"
#include "generate/hit_rate.h"
#include "generate/step_costs.h"

namespace godwit {

class ChainDrafts : public DraftSource {
 public:
  static constexpr int64_t kMaxDraftTokens = 8;

  std::span<const double> Priors() const override { return kPriors; }
  void Follow(std::span<const int32_t> /*text*/) override {}
  void Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
             std::vector<DraftOffer>& offers) override;
  // Makes the next chain. A failure ends this chain, and nothing else but what OnError does.
  void ContinueFrom(const Sequence& sequence, const Outcome& outcome, int64_t row) override;
  double once_ms() const override { return once_ms_.value_or(0); }

 protected:
  // now_ms: the clock that measures the drafts; 0: they take nothing. first_apart: whether the
  // first draft token of all takes time that is spent once.
  ChainDrafts(NowMs now_ms, bool first_apart) : now_ms_(now_ms), first_apart_(first_apart) {}

  // Whether a text can have draft tokens now.
  virtual bool CanDraft(const Sequence& /*sequence*/) const { return true; }
  // Adds a draft token and the logits [vocab] out of which it was chosen. Returns whether the chain
  // goes on.
  using Add = FunctionRef<bool(int32_t token, std::span<const float> logits)>;
  // Makes a chain of at most `most` draft tokens, 1 or more, behind the text. row: in the outcome,
  // of the text's last token but one.
  virtual void Draft(const Sequence& sequence, const Outcome& outcome, int64_t row, int64_t most,
                     Add add) = 0;
  virtual void OnError(const Error& /*error*/) {}
  // Spreads the time since the last draft token over the next `tokens` ones, 1 or more: they were
  // made together.
  void SpreadTime(int64_t tokens);
  double now_ms() const { return now_ms_(); }

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
  const DraftToken& Keep(int32_t token, std::span<const float> logits);

  NowMs now_ms_;
  bool first_apart_;
  int64_t text_tokens_ = 0;  // tokens of the text when the drafts were made
  double since_ms_ = 0;      // the clock at the last draft token
  int64_t together_ = 0;     // the next draft tokens that share a time
  double together_ms_ = 0;   // of each of them
  std::vector<DraftToken> draft_tokens_;
  std::vector<int32_t> chain_;     // nodes of draft_tokens_ in the tree
  int64_t idle_steps_ = 0;         // steps in which no draft token would have paid
  std::optional<double> once_ms_;  // time of the first draft token, with first_apart_

  StepCosts costs_;                       // of steps
  std::array<StepCosts, 2> draft_costs_;  // of a chain's first row, and of a later one
  HitRate all_;
  std::array<HitRate, kPriors.size()> rates_;
};

}  // namespace godwit
