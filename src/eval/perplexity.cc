#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/stopwatch.h"
#include "eval/log_probability.h"
#include "eval/windows.h"

namespace godwit::eval {
namespace {

using Texts = std::span<const std::vector<int32_t>>;

std::vector<Window> Plan(Texts texts, const PerplexityOptions& options) {
  std::vector<int64_t> lengths;
  for (const auto& text : texts) lengths.push_back(std::ssize(text));
  auto windows = PlanWindows(lengths, {.size = options.window_tokens,
                                       .stride = options.stride_tokens,
                                       .max_tokens = options.max_tokens,
                                       .framed = !options.frame.empty()});
  if (windows.empty()) {
    Throw(ErrorKind::kInput,
          "there is nothing to score: no text has a token with another in front of it");
  }
  return windows;
}

void CheckFits(const Session& session, std::span<const Window> windows,
               const PerplexityOptions& options) {
  int64_t longest = 0;
  for (const Window& window : windows) longest = std::max(longest, window.end - window.begin);
  const int64_t frame = std::ssize(options.frame);
  const int64_t needed = frame + longest - 1;  // the last token is not read
  const int64_t limit = session.max_tokens();
  if (needed <= limit) return;
  const int64_t largest = std::max<int64_t>(1, limit + 1 - frame);
  if (options.window_tokens > 0) {
    Throw(ErrorKind::kInput,
          "windows of {} tokens do not fit into the context of {}: take --window {}, or go beyond "
          "the context knowingly with -c {}",
          longest, limit, largest, needed);
  }
  Throw(ErrorKind::kInput,
        "the text has {} tokens and the context holds {}: stream it with --kv sinks:4+{}, cut it "
        "into pieces with --window {}, or go beyond the context knowingly with -c {}",
        longest, limit, std::max<int64_t>(1, limit - 4), largest, needed);
}

// Scores one window after the other.
class Scorer {
 public:
  Scorer(Session& session, Texts texts, const PerplexityOptions& options, int64_t total)
      : session_(session),
        texts_(texts),
        options_(options),
        total_(total),
        buckets_(options.bucket_tokens) {}

  void Score(const Window& window) {
    const auto& text = texts_[window.text];
    const std::span<const int32_t> tokens = Read(text, window);
    // Row i foretells token i + 1; the last token's row nothing.
    const int64_t first = std::ssize(options_.frame) + window.score_begin - window.begin - 1;
    session_.Logits(
        tokens.first(tokens.size() - 1),
        [&](int64_t i, std::span<const float> logits) {
          const int64_t position = window.score_begin + (i - first);
          const int32_t token = text[static_cast<size_t>(position)];
          Add({.text = window.text,
               .position = position,
               .token = token,
               .nll = -LogProbability(logits, token)});
        },
        first);
    const KvReport kv = session_.kv();
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
  // The frame and the window. A view of a whole text is not copied where it needs no frame; a copy
  // is good until the next call.
  std::span<const int32_t> Read(const std::vector<int32_t>& text, const Window& window) {
    const auto part = std::span(text).subspan(static_cast<size_t>(window.begin),
                                              static_cast<size_t>(window.end - window.begin));
    if (options_.frame.empty()) return part;
    framed_ = options_.frame;
    framed_.insert(framed_.end(), part.begin(), part.end());
    return framed_;
  }

  void Add(const ScoredToken& scored) {
    if (std::isnan(scored.nll)) {
      Throw(ErrorKind::kFormat, "the model's logits for the token at position {} are not numbers",
            scored.position);
    }
    nll_ += scored.nll;
    ++done_;
    const double now = watch_.ms();
    buckets_.Add(scored.position, scored.nll, now - last_ms_);
    last_ms_ = now;
    if (options_.on_token) options_.on_token(scored);
    if (options_.on_progress) options_.on_progress(done_, total_);
  }

  Session& session_;
  const Texts texts_;
  const PerplexityOptions& options_;
  const int64_t total_;
  PositionBuckets buckets_;
  std::vector<int32_t> framed_;
  double nll_ = 0;
  int64_t done_ = 0;
  Stopwatch watch_;
  double last_ms_ = 0;  // when the token before was scored
  KvReport kv_;
};

}  // namespace

PerplexityResult MeasurePerplexity(Session& session, Texts texts,
                                   const PerplexityOptions& options) {
  const Stopwatch watch;
  if (options.bucket_tokens < 0) {
    Throw(ErrorKind::kInput, "buckets of {} positions, expected at least 1, or 0 to double them",
          options.bucket_tokens);
  }
  const auto windows = Plan(texts, options);
  CheckFits(session, windows, options);
  int64_t total = 0;
  for (const Window& window : windows) total += window.end - window.score_begin;
  Scorer scorer(session, texts, options, total);
  for (const Window& window : windows) scorer.Score(window);
  PerplexityResult result = scorer.Result();
  result.elapsed_ms = watch.ms();
  return result;
}

}  // namespace godwit::eval
