#include "eval/perplexity.h"

#include <cmath>

#include "base/error.h"
#include "base/stopwatch.h"
#include "eval/scoring_plan.h"

namespace godwit::eval {
namespace {

// Scores one window after the other.
class Scorer {
 public:
  Scorer(const Reader& reader, const ScoringPlan& plan, const PerplexityOptions& options)
      : reader_(reader), plan_(plan), options_(options), buckets_(options.bucket_tokens) {}

  void Score(const Window& window) {
    charged_ = window.score_begin;
    plan_.Score(
        reader_, window, [&](const ScoredToken& scored, std::span<const float>) { Add(scored); },
        [&](const PromptProgress&) { ChargeTime(); });
    const KvReport kv = reader_.kv();
    if (kv.seen > kv_.seen) kv_ = kv;
  }

  PerplexityResult Result() const {
    const double mean = nll_ / static_cast<double>(done_);
    return {.nll = mean,
            .perplexity = std::exp(mean),
            .tokens = done_,
            .buckets = buckets_.Table(),
            .kv = kv_};
  }

 private:
  void Add(const ScoredToken& scored) {
    nll_ += scored.nll;
    ++done_;
    buckets_.Add(scored.position, scored.nll);
    end_ = scored.position + 1;
    if (options_.on_token) options_.on_token(scored);
    if (options_.on_progress) options_.on_progress(done_, plan_.tokens());
  }

  // Charges time evenly to tokens that were scored together, since none of them came first. They
  // also carry the time of unscored tokens before them.
  void ChargeTime() {
    if (end_ <= charged_) return;
    const double now = watch_.ms();
    buckets_.AddTime(charged_, end_, now - charged_ms_);
    charged_ = end_;
    charged_ms_ = now;
  }

  const Reader& reader_;
  const ScoringPlan& plan_;
  const PerplexityOptions& options_;
  PositionBuckets buckets_;
  double nll_ = 0;
  int64_t done_ = 0;
  int64_t end_ = 0;      // the end of the last scored position
  int64_t charged_ = 0;  // positions before this have their time
  Stopwatch watch_;
  double charged_ms_ = 0;  // the sum over these
  KvReport kv_;
};

}  // namespace

PerplexityResult MeasurePerplexity(const Reader& reader,
                                   std::span<const std::vector<int32_t>> texts,
                                   const PerplexityOptions& options) {
  const Stopwatch watch;
  if (options.bucket_tokens < 0) {
    Throw(ErrorKind::kInput, "buckets of {} positions: expected at least 1, or 0 to double them",
          options.bucket_tokens);
  }
  const ScoringPlan plan(texts, options.frame,
                         {.size = options.window_tokens,
                          .stride = options.stride_tokens,
                          .last = options.query_tokens,
                          .max_tokens = options.max_tokens});
  plan.CheckFits(reader);
  Scorer scorer(reader, plan, options);
  for (const Window& window : plan.windows()) scorer.Score(window);
  PerplexityResult result = scorer.Result();
  result.elapsed_ms = watch.ms();
  return result;
}

}  // namespace godwit::eval
