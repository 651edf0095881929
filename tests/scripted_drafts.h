// ScriptedDrafts, for tests: a draft source that knows the text to come.
#pragma once

#include <utility>
#include <vector>

#include "base/rng.h"
#include "generate/draft_source.h"

namespace godwit {

// Offers draft tokens from the future text. For each node, one child is right with probability
// `right`.
class ScriptedDrafts : public DraftSource {
 public:
  ScriptedDrafts(int32_t vocab, std::vector<int32_t> future, double right, double prior = 0.5)
      : vocab_(vocab), future_(std::move(future)), right_(right), priors_{prior} {}
  std::string_view name() const override { return "foreseen"; }
  std::span<const double> Priors() const override { return priors_; }
  void Follow(std::span<const int32_t> /*text*/) override {}
  void Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
             std::vector<DraftOffer>& offers) override {
    const auto place = static_cast<int64_t>(text.size()) + tree[node].depth;
    if (place >= std::ssize(future_)) return;
    const int32_t token = future_[place];
    const bool right = Uniform(1, static_cast<uint64_t>(node), place, 0) < right_;
    offers.push_back({(token + 1) % vocab_, 0});
    if (right) offers.push_back({token, 0});
    offers.push_back({(token + 2) % vocab_, 0});
  }

 private:
  int32_t vocab_;
  std::vector<int32_t> future_;
  double right_;
  std::vector<double> priors_;
};

}  // namespace godwit
