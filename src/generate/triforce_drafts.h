// TriForceDrafts: two levels of draft tokens, one behind the other: TriForce (arXiv 2404.11912), a
// baseline of TokenSwift (arXiv 2502.18890), table 3.
//
// A smaller model, which sees little of the text, draws a few tokens. The text's own model reads
// them over a part of its cache, keeps those that it would have chosen there, and chooses one more.
// That repeats until the chain is long enough. The chain is the one that PartialDrafts makes; only
// its time differs.
#pragma once

#include <memory>
#include <vector>

#include "generate/chain_drafts.h"
#include "generate/model_text.h"
#include "generate/partial_text.h"

namespace godwit {

class TriForceDrafts : public ChainDrafts {
 public:
  struct Lengths {
    int64_t inner;  // tokens of the smaller model that are read together, 1 or more
    int64_t outer;  // the most draft tokens of a chain, 1 to kMaxDraftTokens
  };
  // policy, min_tokens, now_ms: as PartialDrafts takes them. small: the smaller model.
  TriForceDrafts(std::unique_ptr<AttentionPolicy> policy, int64_t min_tokens,
                 ModelText::Parts small, Lengths lengths, NowMs now_ms);

  std::string_view name() const override { return "triforce"; }
  void Follow(std::span<const int32_t> text) override { small_.Follow(text); }
  double EndStep(const LanguageModel& model, const Exec& exec) override;
  bool ReleaseMemory() override;

 private:
  bool CanDraft(const Sequence& sequence) const override;
  void Draft(const Sequence& sequence, const Outcome& outcome, int64_t row, int64_t most,
             Add add) override;
  // After a failure there are no more draft tokens.
  void OnError(const Error& /*error*/) override { ReleaseMemory(); }
  // Drafts behind `draft`, which is the text as the part shows it.
  void DraftByPart(Sequence& draft, const Outcome& outcome, int64_t most, Add add);
  // The rows of tokens_, the last token of `draft` and those behind it.
  Segment ChainSegment(const Sequence& draft);
  // Draws at most `most` tokens by the smaller model behind those of `draft`, into tokens_.
  void DrawBySmall(const Sequence& draft, const Outcome& outcome, const Exec& exec, int64_t most);

  PartialText part_;
  ModelText small_;
  Lengths lengths_;
  std::vector<int32_t> tokens_, parents_;  // rows that are read together
};

}  // namespace godwit
