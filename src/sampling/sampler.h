// Sampler: logits in, one token out, by the steps of SamplerOptions.
//
// The draw is a pure function of the logits, the history and (seed, sequence, position). It does
// not depend on the batch, on earlier draws or on the number of threads. A rejected draft or a
// repeated call needs no rewinding. Allocates only in the constructor. One thread at a time.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/candidates.h"
#include "sampling/options.h"
#include "sampling/penalties.h"

namespace godwit {

class Sampler {
 public:
  // Throws Error(kInput) if an option makes no sense.
  Sampler(const SamplerOptions& options, int32_t vocab);

  // The token for `position` of text number `sequence` (which tells apart several answers to one
  // prompt). `logits` ([vocab] f32) serves as scratch and is changed. `history` is the text before
  // `position`; the penalties see its end.
  //
  // Throws Error(kFormat) if a logit is NaN or +inf or all are -inf (the model is broken). Throws
  // Error(kInput) if bias and penalties leave no token or the history holds an unknown one.
  int32_t Sample(std::span<float> logits, std::span<const int32_t> history, uint64_t sequence,
                 int64_t position);

  // The distribution from which Sample draws: the surviving tokens with probabilities that sum to 1
  // (greedy: the one token, with probability 1). The view is valid until the next call. Throws as
  // Sample does.
  std::span<const Candidate> Distribution(std::span<float> logits,
                                          std::span<const int32_t> history);

 private:
  // The number with which TopK fills the candidates: 0, all, unless it is the first of the filters.
  int FirstTopK() const;
  void RunSteps();

  SamplerOptions options_;
  int32_t vocab_;
  Penalties penalties_;
  Candidates candidates_;
};

// The candidate at `uniform`, in [0, 1), of the cumulative distribution.
int32_t Draw(std::span<const Candidate> candidates, double uniform);

}  // namespace godwit
