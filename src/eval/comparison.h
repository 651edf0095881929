// The distance of one model's predictions from another's on the same text: the cost of
// quantization.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "eval/reader.h"
#include "eval/scoring_plan.h"

namespace godwit::eval {

struct ComparedToken {
  ScoredToken reference;
  double nll;   // of the other model, in nats
  double kl;    // D(reference || other) of the distributions the token was drawn from, in nats
  bool agrees;  // both have the same first choice
};

struct ModelComparison {
  int64_t tokens = 0;
  double reference_nll = 0;  // means, in nats per token
  double nll = 0;
  double kl = 0;
  double top1 = 0;        // the share of tokens where both agree
  ComparedToken worst{};  // the largest kl; the first of equals
  KvReport kv;            // of the reference, at the end of the longest window

  double reference_perplexity() const { return std::exp(reference_nll); }
  double perplexity() const { return std::exp(nll); }
  // The change of the perplexity, relative to the reference's.
  double change() const { return std::expm1(nll - reference_nll); }
};

// The hooks run on the calling thread and may throw. Progress counts the tokens that either model
// has scored.
struct ComparisonHooks {
  std::function<void(const ComparedToken& compared)> on_token;
  std::function<void(int64_t done_tokens, int64_t total_tokens)> on_progress;
};

// Compares two models of the same vocabulary. Both read a window, one after the other,
// before either goes on: memory holds the reference's logits of one window, [window, vocab] f32.
// Throws Error(kInput) before any work for a window that does not fit; otherwise as ScoringPlan
// does.
ModelComparison Compare(const Reader& reference, const Reader& other, const ScoringPlan& plan,
                        const ComparisonHooks& hooks);

}  // namespace godwit::eval
