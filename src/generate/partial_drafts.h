// PartialDrafts: draft tokens by the model itself. It reads its own tokens one after the other and
// sees a part of the text's cache, as a policy shows it. Sources: TriForce (arXiv 2404.11912); in
// TokenSwift (arXiv 2502.18890), section 3.3. The verifying step then reads all of the cache, once
// for all draft tokens.
#pragma once

#include <memory>
#include <utility>

#include "generate/chain_drafts.h"
#include "generate/partial_text.h"

namespace godwit {

class PartialDrafts : public ChainDrafts {
 public:
  // policy: of the text's model; it shows the part. min_tokens: shorter texts have no draft
  // tokens. now_ms: as ChainDrafts takes it.
  PartialDrafts(std::unique_ptr<AttentionPolicy> policy, int64_t min_tokens, NowMs now_ms)
      // The first draft token of all makes the policy's index.
      : ChainDrafts(now_ms, /*first_apart=*/true), part_(std::move(policy), min_tokens) {}

  std::string_view name() const override { return "partial"; }
  bool ReleaseMemory() override { return part_.Release(); }

 private:
  bool CanDraft(const Sequence& sequence) const override { return part_.Has(sequence); }
  void Draft(const Sequence& sequence, const Outcome& outcome, int64_t row, int64_t most,
             Add add) override;
  // After a failure there are no more draft tokens.
  void OnError(const Error& /*error*/) override { ReleaseMemory(); }

  PartialText part_;
};

}  // namespace godwit
