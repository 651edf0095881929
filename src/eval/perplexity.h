// Perplexity: how well a model predicts texts, given what its cache policy lets it see.
//
// A text of any length goes through one reader in pieces; only its token ids grow with it. Or it is
// cut into windows, each of which begins with an empty cache.
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
  // The tokens in front of every text and every window (LeadingTokens); never scored. Without them,
  // the first token of each is not scored either: nothing predicts it.
  std::vector<int32_t> frame;
  int64_t window_tokens = 0;  // without the frame; 0: a text is one piece, of any length
  int64_t stride_tokens = 0;  // from window to window; 0: side by side
  // The tokens at the end of each window that are scored; 0: all. The tokens before them are their
  // context, as SessionOptions::prefill and kv "blocks" know it.
  int64_t query_tokens = 0;
  int64_t max_tokens = -1;    // the most tokens to score; -1: all
  int64_t bucket_tokens = 0;  // as PositionBuckets takes it

  // The callbacks run on the calling thread, in order for every scored token, and may throw.
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

// texts: token ids without frame; each begins a new sequence. Throws Error(kInput), before any
// work, if nothing is to be scored, options make no sense, or a window does not fit into the
// session's context. Throws Error(kFormat) for logits that are not numbers; otherwise as
// Session::Logits does.
PerplexityResult MeasurePerplexity(const Reader& reader,
                                   std::span<const std::vector<int32_t>> texts,
                                   const PerplexityOptions& options);

}  // namespace godwit::eval
