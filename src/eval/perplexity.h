// Perplexity: how well a model predicts texts, given what its cache policy lets it see.
//
// A text of any length goes through one reader in pieces; nothing but its token ids grows with it.
// Or it is cut into windows, each of which begins with an empty cache.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "eval/position_buckets.h"
#include "eval/scoring_plan.h"
#include "godwit/engine.h"

namespace godwit::eval {

struct PerplexityOptions {
  // In front of every text and every window (TextFrame); never scored. Without it their first token
  // is not scored either: nothing foretells it.
  std::vector<int32_t> frame;
  int64_t window_tokens = 0;  // without the frame; 0: a text is one piece, however long
  int64_t stride_tokens = 0;  // from window to window; 0: side by side
  // Only so many at the end of each window are scored: what stands before them is their context, as
  // SessionOptions::prefill and kv "blocks" know it. 0: all
  int64_t query_tokens = 0;
  int64_t max_tokens = -1;    // scored in all; -1: all
  int64_t bucket_tokens = 0;  // as PositionBuckets

  // Both are called from the calling thread, for every scored token in order, and may throw.
  std::function<void(const ScoredToken& scored)> on_token;
  std::function<void(int64_t done_tokens, int64_t total_tokens)> on_progress;
};

struct PerplexityResult {
  double nll = 0;         // mean, in nats per token
  double perplexity = 1;  // exp(nll)
  int64_t tokens = 0;     // scored
  std::vector<Bucket> buckets;
  KvReport kv;  // after the longest window
  double elapsed_ms = 0;
};

// texts: token ids without frame; each begins a new sequence. Throws Error(kInput) before any work
// when there is nothing to score, options make no sense, or a window does not fit into the
// session's context, Error(kFormat) for logits that are not numbers; otherwise as Session::Logits
// does.
PerplexityResult MeasurePerplexity(const Reader& reader,
                                   std::span<const std::vector<int32_t>> texts,
                                   const PerplexityOptions& options);

}  // namespace godwit::eval
