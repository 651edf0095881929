// PartialDrafts: draft tokens by the model itself. It reads its own tokens one after the other and
// sees a part of the text's cache, as a policy shows it. Sources: TriForce (arXiv 2404.11912); in
// TokenSwift (arXiv 2502.18890), section 3.3. The verifying step then reads all of the cache, once
// for all draft tokens.
//
// The part is seen through a fork of the text's cache. Before each chain the fork goes on as the
// text has: with the verified keys, and the policy's index of them.
#pragma once

#include <memory>
#include <optional>

#include "generate/chain_drafts.h"

namespace godwit {

class PartialDrafts : public ChainDrafts {
 public:
  // policy: of the text's model; it shows the part. min_tokens: shorter texts have no draft
  // tokens. now_ms: as ChainDrafts takes it.
  PartialDrafts(std::unique_ptr<AttentionPolicy> policy, int64_t min_tokens, NowMs now_ms);

  std::string_view name() const override { return "partial"; }
  bool ReleaseMemory() override;

 private:
  bool CanDraft(const Sequence& sequence) const override;
  void Draft(const Sequence& sequence, const Outcome& outcome, int64_t row, int64_t most,
             Add add) override;
  // After a failure there are no more draft tokens.
  void OnError(const Error& /*error*/) override { ReleaseMemory(); }
  void ContinueAs(const Sequence& sequence);

  std::unique_ptr<AttentionPolicy> policy_;
  int64_t min_tokens_;
  bool released_ = false;
  std::optional<Sequence> draft_;  // the text, and draft tokens
  int64_t text_tokens_ = 0;        // tokens of the text that draft_ has
};

}  // namespace godwit
