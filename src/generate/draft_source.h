// DraftSource: a source of draft tokens. It changes speed alone: the model reads the draft tokens
// and chooses its own (speculative.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "generate/strategy.h"

namespace godwit {

// A token of a tree of drafts. Node 0 is the text's last token, and parents come before children.
struct DraftNode {
  int32_t token;
  int32_t parent;  // -1 for node 0
  int32_t depth;   // 0 for node 0
  double reach;    // estimated probability that the text comes here
};

struct DraftOffer {
  int32_t token;
  int32_t kind;  // index in DraftSource::Priors
};

class DraftSource {
 public:
  virtual ~DraftSource() = default;

  virtual std::string_view name() const = 0;
  // The assumed acceptance rate of each kind of offer, before any is learned. Offers of one kind
  // are about equally likely to be right.
  virtual std::span<const double> Priors() const = 0;

  // Follows the text: every token that is read or continued comes up here, maybe many at once,
  // before the next tree grows behind it.
  virtual void Follow(std::span<const int32_t> text) = 0;
  // Offers tokens that may follow a node, each token once, likeliest first. In a tree, node 0 is
  // asked first, every other one after its parent.
  virtual void Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
                     std::vector<DraftOffer>& offers) = 0;

  // Learns from the logits [vocab] behind a token that was read, after a step.
  virtual void Learn(int32_t /*token*/, std::span<const float> /*logits*/) {}
  // Learns the row with which the text goes on, after a step. The row chose sequence's last token.
  // May compute (Outcome::model); an error ends the text.
  virtual void ContinueFrom(const Sequence& /*sequence*/, const Outcome& /*outcome*/,
                            int64_t /*row*/) {}
  // Computes what serves all texts at once (as Strategy::EndStep), when all texts of the step have
  // gone on. Returns this text's share of the time, in ms.
  virtual double EndStep(const LanguageModel& /*model*/, const Exec& /*exec*/) { return 0; }
  // The part of all these calls' time so far, in ms, that is spent once, such as for an index.
  virtual double once_ms() const { return 0; }
  // Gives back memory, as Strategy::ReleaseMemory.
  virtual bool ReleaseMemory() { return false; }
};

}  // namespace godwit
