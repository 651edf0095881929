#include "sampling/sampler.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "sampling/truncation.h"

namespace godwit {
namespace {

// Refuses NaN and +inf, which have no place in a distribution. Comparisons alone would silently
// pick some token.
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
  candidates_.reserve(TopKCapacity(FirstTopK(), static_cast<size_t>(vocab)));
}

int Sampler::FirstTopK() const {
  if (options_.temperature == 0) return 1;  // temperature is monotone: greedy is top-1
  for (const SamplerStep step : options_.steps) {
    if (step == SamplerStep::kTopK) return options_.top_k;
    // Only penalties change the order of logits, and they have been applied.
    if (step != SamplerStep::kPenalties && step != SamplerStep::kTemperature) break;
  }
  return 0;
}

void Sampler::RunSteps() {
  float temperature = 1;
  bool current = false;  // the probabilities match the logits and the temperature so far
  const auto filter = [&](auto keep, float strength, float off) {
    if (strength == off) return;
    if (!current) Softmax(candidates_, temperature);
    current = true;
    keep(candidates_, strength);
  };
  for (const SamplerStep step : options_.steps) {
    switch (step) {
      case SamplerStep::kPenalties:
        break;  // no candidates yet
      case SamplerStep::kTopK:
        KeepTopK(candidates_, options_.top_k);
        if (current) Normalize(candidates_);
        break;
      case SamplerStep::kTopP:
        filter(KeepTopP, options_.top_p, 1);
        break;
      case SamplerStep::kMinP:
        filter(KeepMinP, options_.min_p, 0);
        break;
      case SamplerStep::kEta:
        filter(KeepEta, options_.eta, 0);
        break;
      case SamplerStep::kTemperature:
        // The temperature is not applied to logits, which would overflow at 1e-30.
        temperature = options_.temperature;
        current = false;
        break;
    }
  }
  if (!current) Softmax(candidates_, temperature);
}

std::span<const Candidate> Sampler::Distribution(std::span<float> logits,
                                                 std::span<const int32_t> history) {
  assert(logits.size() == static_cast<size_t>(vocab_));
  CheckLogits(logits);
  penalties_.Apply(logits, history);
  TopK(logits, FirstTopK(), candidates_);
  if (candidates_.empty()) {
    Throw(ErrorKind::kInput, "logit_bias and penalties leave no token of {} to choose from",
          vocab_);
  }
  if (options_.temperature == 0) {
    candidates_.front().probability = 1;
  } else {
    RunSteps();
  }
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
  // Rounding may leave the sum just below 1 and `uniform` beyond it: then the last candidate
  // counts.
  return last;
}

}  // namespace godwit
