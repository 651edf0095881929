#include "eval/comparison.h"

#include <cassert>

#include "eval/log_probability.h"

namespace godwit::eval {
namespace {

// The reference's predictions of the tokens of one window.
class WindowOfReference {
 public:
  void Clear() {
    scored_.clear();
    logits_.clear();
  }

  void Add(const ScoredToken& scored, std::span<const float> logits) {
    scored_.push_back(scored);
    logits_.insert(logits_.end(), logits.begin(), logits.end());
  }

  // Compares the reference's token with the same token of the other model.
  ComparedToken Compare(size_t i, const ScoredToken& scored, std::span<const float> logits) const {
    assert(scored_[i].position == scored.position);
    const auto reference = std::span(logits_).subspan(i * logits.size(), logits.size());
    return {.reference = scored_[i],
            .nll = scored.nll,
            .kl = KlDivergence(reference, logits),
            .agrees = MostProbable(reference) == MostProbable(logits)};
  }

 private:
  std::vector<ScoredToken> scored_;
  std::vector<float> logits_;  // [scored, vocab]
};

// Adds to sums, which Finish turns into means.
void Add(const ComparedToken& compared, ModelComparison& sums) {
  if (sums.tokens == 0 || compared.kl > sums.worst.kl) sums.worst = compared;
  ++sums.tokens;
  sums.reference_nll += compared.reference.nll;
  sums.nll += compared.nll;
  sums.kl += compared.kl;
  sums.top1 += compared.agrees ? 1 : 0;
}

ModelComparison Finish(ModelComparison sums) {
  for (double* sum : {&sums.reference_nll, &sums.nll, &sums.kl, &sums.top1}) {
    *sum /= static_cast<double>(sums.tokens);
  }
  return sums;
}

}  // namespace

ModelComparison Compare(const Reader& reference, const Reader& other, const ScoringPlan& plan,
                        const ComparisonHooks& hooks) {
  plan.CheckFits(reference);
  plan.CheckFits(other);
  int64_t done = 0;
  const auto progress = [&] {
    if (hooks.on_progress) hooks.on_progress(++done, 2 * plan.tokens());
  };
  ModelComparison sums;
  WindowOfReference rows;
  for (const Window& window : plan.windows()) {
    rows.Clear();
    plan.Score(reference, window, [&](const ScoredToken& scored, std::span<const float> logits) {
      rows.Add(scored, logits);
      progress();
    });
    if (const KvReport kv = reference.kv(); kv.seen > sums.kv.seen) sums.kv = kv;
    size_t i = 0;
    plan.Score(other, window, [&](const ScoredToken& scored, std::span<const float> logits) {
      const ComparedToken compared = rows.Compare(i++, scored, logits);
      Add(compared, sums);
      if (hooks.on_token) hooks.on_token(compared);
      progress();
    });
  }
  return Finish(sums);
}

}  // namespace godwit::eval
