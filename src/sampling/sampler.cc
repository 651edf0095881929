#include "sampling/sampler.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "sampling/eta.h"
#include "sampling/min_p.h"
#include "sampling/top_k.h"
#include "sampling/top_p.h"

namespace godwit {
namespace {

// NaN and +inf have no place in a distribution; a comparison chain would silently pick some token.
void CheckLogits(std::span<const float> logits) {
  int32_t broken = 0;
  int32_t possible = 0;
  for (const float logit : logits) {  // without branches, so that it is vectorised
    broken |= !(logit < INFINITY);
    possible |= logit > -INFINITY;
  }
  if (broken != 0) {
    const auto first =
        std::find_if(logits.begin(), logits.end(), [](float logit) { return !(logit < INFINITY); });
    Throw(ErrorKind::kFormat,
          "the model computed {} as the logit of token {}: its weights are damaged, or its "
          "activations overflow",
          *first, first - logits.begin());
  }
  if (possible == 0) {
    Throw(ErrorKind::kFormat, "the model computed -inf as the logit of all {} tokens",
          logits.size());
  }
}

const SamplerOptions& Validated(const SamplerOptions& options, int32_t vocab) {
  Validate(options, vocab);
  return options;
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options, int32_t vocab)
    : options_(Validated(options, vocab)), vocab_(vocab), penalties_(options, vocab) {
  // Temperature is monotone, so greedy is top-1.
  if (options_.temperature == 0) {
    candidates_.reserve(TopKCapacity(1, static_cast<size_t>(vocab)));
  } else {
    candidates_.reserve(TopKCapacity(options_.top_k, static_cast<size_t>(vocab)));
  }
}

std::span<const Candidate> Sampler::Distribution(std::span<float> logits,
                                                 std::span<const int32_t> history) {
  assert(logits.size() == static_cast<size_t>(vocab_));
  CheckLogits(logits);
  penalties_.Apply(logits, history);
  const bool greedy = options_.temperature == 0;
  // Before the softmax though the temperature comes first in the list: scaling does not change the
  // order, and this way only k exponentials are computed.
  TopK(logits, greedy ? 1 : options_.top_k, candidates_);
  if (candidates_.empty()) {
    Throw(ErrorKind::kInput, "logit_bias and penalties leave no token of {} to choose from",
          vocab_);
  }
  if (greedy) {
    candidates_.front().probability = 1;
    return candidates_;
  }
  Softmax(candidates_, options_.temperature);
  KeepTopP(candidates_, options_.top_p);
  KeepMinP(candidates_, options_.min_p);
  KeepEta(candidates_, options_.eta);
  return candidates_;
}

int32_t Sampler::Sample(std::span<float> logits, std::span<const int32_t> history,
                        uint64_t sequence, int64_t position) {
  const std::span<const Candidate> candidates = Distribution(logits, history);
  return Draw(candidates, Uniform(options_.seed, sequence, position, /*draw=*/0));
}

int32_t Draw(std::span<const Candidate> candidates, double uniform) {
  double cumulative = 0;
  int32_t last = -1;
  for (const Candidate& candidate : candidates) {
    if (candidate.probability <= 0) continue;
    cumulative += candidate.probability;
    last = candidate.token;
    if (uniform < cumulative) break;
  }
  // Rounding may leave the sum just below 1 and `uniform` beyond it: the last candidate then.
  return last;
}

}  // namespace godwit
