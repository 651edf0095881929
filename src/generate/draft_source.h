// DraftSource: where guesses of the next tokens come from. What it guesses changes speed alone: the
// model reads the guesses and chooses its own tokens (speculative.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "generate/strategy.h"

namespace godwit {

// A token of a tree of guesses. Node 0 is the text's last token, and parents come before children.
struct DraftNode {
  int32_t token;
  int32_t parent;  // -1 of node 0
  int32_t depth;   // 0 of node 0
  double reach;    // how likely the text is to come here, as far as is known
};

struct DraftOffer {
  int32_t token;
  int32_t kind;  // among those of the source
};

class DraftSource {
 public:
  virtual ~DraftSource() = default;

  virtual std::string_view name() const = 0;
  // Offers of one kind are about equally likely to be right. How likely is learned; of each kind,
  // what is assumed before.
  virtual std::span<const double> Priors() const = 0;

  // Every token of a text that is read or continued comes up here, maybe many at once, before the
  // next tree grows behind it.
  virtual void Follow(std::span<const int32_t> text) = 0;
  // What may follow a node, of each token one offer, likeliest first. Of a tree, node 0 is asked
  // first, every other one after its parent.
  virtual void Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
                     std::vector<DraftOffer>& offers) = 0;

  // After a step: the logits [vocab] behind a token that was read.
  virtual void Learn(int32_t /*token*/, std::span<const float> /*logits*/) {}
  // And the row with which the text goes on: it has come to what that row chose, sequence's last
  // token. May compute (Outcome::model); what it throws ends the text.
  virtual void GoOnFrom(const Sequence& /*sequence*/, const Outcome& /*outcome*/, int64_t /*row*/) {
  }
  // Then, when all texts of the step have: what is computed for all of them at once (as
  // Strategy::EndStep). Returns this text's share of the time, in ms.
  virtual double EndStep(const LanguageModel& /*model*/, const Exec& /*exec*/) { return 0; }
  // Of the time that all of these took so far, in ms: what is made once, such as an index.
  virtual double once_ms() const { return 0; }
  // As Strategy has it.
  virtual bool GiveBack() { return false; }
};

}  // namespace godwit
