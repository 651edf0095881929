// PartialText: a text of which its model sees a part, as a policy shows it, and draft tokens behind
// it. It is a fork of the text's cache, which goes on as the text has: with the verified keys, and
// the policy's index of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "generate/sequence.h"

namespace godwit {

class PartialText {
 public:
  // policy: of the text's model; it shows the part. min_tokens: shorter texts have none.
  PartialText(std::unique_ptr<AttentionPolicy> policy, int64_t min_tokens);

  bool Has(const Sequence& sequence) const {
    return !released_ && sequence.cache->length() >= min_tokens_;
  }
  // The text without draft tokens. Draft tokens of the last call are gone.
  Sequence& ContinueAs(const Sequence& sequence);
  // Gives its memory back; there is no text any more. False: it had none.
  bool Release();

 private:
  std::unique_ptr<AttentionPolicy> policy_;
  int64_t min_tokens_;
  bool released_ = false;
  std::optional<Sequence> draft_;  // the text, and draft tokens
  int64_t text_tokens_ = 0;        // tokens of the text that draft_ has
};

}  // namespace godwit
