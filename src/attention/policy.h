// AttentionPolicy: what a query may see, at which positions, and where K and V live.
//
// The one interface through which a model attends. A model never learns which policy it has; a
// policy never learns which model it serves. Queries and keys arrive *before* position encoding,
// because a streaming cache counts positions in the cache, not in the text.
//
// A step is Begin, one Attend for every layer in order, End. A step that is not ended did not
// happen: the next Begin (or Truncate) finds the policy as the last End left it, whatever went
// wrong in between. One policy serves one sequence and is not thread-safe. tests/laws holds every
// policy to the same laws.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// Rows of one layer for the tokens of a step.
struct AttentionInput {
  // [tokens, heads * head_dim], or no rows: k and v are cached and nothing attends.
  MatrixView<const float> q;
  MatrixView<const float> k;  // [tokens, kv_heads * head_dim]
  MatrixView<const float> v;  // [tokens, kv_heads * head_dim]
  // [heads] constants, or empty: see ops::Attention. A policy hands them on.
  std::span<const float> sink_logits = {};
};

struct KvStats {
  std::string policy;  // as --kv spells it
  int64_t seen = 0;    // tokens that went through the policy
  int64_t kept = 0;    // of those, the ones that the next token will see
  // Position of the first of the seen - kept others, which follow each other in the text.
  int64_t first_dropped = 0;
  int64_t most_kept = 0;  // tokens, however many there will be
  int64_t bytes = 0;      // memory held
};

class AttentionPolicy {
 public:
  virtual ~AttentionPolicy() = default;

  // Tokens that went through, the next token's position in the text.
  virtual int64_t length() const = 0;

  // Prepares a step of `tokens` tokens that continue the text: makes room, settles positions and
  // visibility. Throws Error and changes nothing if it cannot: kInput when the text would outgrow
  // max_length() or the step max_step_tokens(), kMemory when the cache cannot grow.
  virtual void Begin(int64_t tokens) = 0;

  // The length that the text may reach, and the most tokens that one step may have; INT64_MAX where
  // there is no limit.
  virtual int64_t max_length() const = 0;
  virtual int64_t max_step_tokens() const = 0;

  // Caches k and v of `layer` and attends: out [tokens, heads * head_dim], or no rows as q.
  virtual void Attend(int64_t layer, const AttentionInput& input, const Exec& exec,
                      MatrixView<float> out) = 0;

  virtual void End() = 0;

  // Forgets the tokens at positions >= length, as if they had never come. Truncate throws
  // Error(kUnsupported) where CanTruncate says no.
  virtual bool CanTruncate(int64_t length) const = 0;
  virtual void Truncate(int64_t length) = 0;

  virtual KvStats Stats() const = 0;
};

}  // namespace godwit
