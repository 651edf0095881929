// RecycledDrafts: draft tokens from earlier logits. They are the likeliest tokens after the last
// time that the model read a token, whatever stood before it. Rows that came to nothing count, too
// (Token Recycling, arXiv 2408.08696).
#pragma once

#include <array>
#include <vector>

#include "generate/draft_source.h"

namespace godwit {

class RecycledDrafts : public DraftSource {
 public:
  // Takes 32 bytes for each token of the vocabulary.
  explicit RecycledDrafts(int64_t vocab);
  std::string_view name() const override { return "recycled"; }
  std::span<const double> Priors() const override { return priors_; }
  void Follow(std::span<const int32_t> /*text*/) override {}
  void Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
             std::vector<DraftOffer>& offers) override;
  void Learn(int32_t token, std::span<const float> logits) override;

 private:
  static constexpr size_t kKept = 6;
  struct Successors {
    std::array<int32_t, kKept> tokens;
    std::array<uint8_t, kKept> gaps;  // classes of how far their logits stand apart
    uint8_t count = 0;
  };

  std::vector<double> priors_;
  std::vector<Successors> successors_;  // [vocab]
};

}  // namespace godwit
