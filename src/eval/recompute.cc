#include "eval/recompute.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "eval/stream.h"

namespace godwit::eval {
namespace {

class Windows {
 public:
  Windows(Session& session, RecomputeOptions options)
      : session_(session), options_(std::move(options)) {
    if (options_.sink_token && options_.window < 2) {
      Throw(ErrorKind::kInput,
            "a window of 1 token holds only this model's sink token: use recompute:2 at least");
    }
  }

  void Logits(std::span<const int32_t> tokens, const Reader::OnRow& row, int64_t first,
              const Reader::OnProgress& on_progress) {
    const Stopwatch watch;
    const auto total = std::ssize(tokens);
    if (total == 0) session_.Logits(tokens, row);  // refuses an empty text
    for (int64_t done = first; done < total;) {
      const int64_t end = std::max(done + 1, FirstWindow(tokens));
      const int64_t begin = BeginOf(tokens.first(end));
      session_.Logits(
          tokens.subspan(begin, end - begin),
          [&](int64_t i, std::span<const float> logits) { row(begin + i, logits); }, done - begin);
      Note(tokens.first(end));
      done = end;
      if (!on_progress) continue;
      on_progress({.done_tokens = done,
                   .total_tokens = total,
                   .cached_tokens = 0,
                   .elapsed_ms = watch.ms()});
    }
  }

  GenerateResult Generate(std::span<const int32_t> prompt, const GenerateOptions& options) {
    const Stopwatch watch;
    std::vector<int32_t> text(prompt.begin(), prompt.end());
    GenerateResult result{.prompt_tokens = std::ssize(prompt),
                          .read_tokens = std::ssize(prompt),
                          .finish_reason = FinishReason::kLength};
    GenerateOptions next{.max_tokens = 1, .sampler = options.sampler};
    next.ignore_eos = options.ignore_eos;
    while (std::ssize(result.tokens) != options.max_tokens && result.stop.empty()) {
      const GenerateResult one = session_.Generate(std::span(text).subspan(BeginOf(text)), next);
      if (one.finish_reason == FinishReason::kCancelled) {
        result.finish_reason = FinishReason::kCancelled;
        break;
      }
      Note(text);
      if (result.tokens.empty()) {
        result.prompt_ms = watch.ms();
        if (options.on_progress) {
          options.on_progress({.done_tokens = std::ssize(prompt),
                               .total_tokens = std::ssize(prompt),
                               .cached_tokens = 0,
                               .elapsed_ms = watch.ms()});
        }
      }
      text.push_back(one.tokens.front());
      result.tokens.push_back(one.tokens.front());
      result.text = TextBehind(options_.decode, prompt.back(), result.tokens);
      if (one.finish_reason == FinishReason::kStop) {  // the model's stop
        result.finish_reason = FinishReason::kStop;
        break;
      }
      CutAtStop(options.stop, result);
    }
    result.kv = Kv();
    result.predicted_ms = watch.ms() - result.prompt_ms;
    return result;
  }

  KvReport Kv() const {
    const int64_t kept = std::min(seen_, options_.window);
    const int64_t sinks = options_.sink_token ? 1 : 0;
    KvReport report{.policy = fmt::format("recompute:{}", options_.window),
                    .seen = seen_,
                    .kept = kept,
                    .bytes = session_.kv().bytes};
    if (kept < seen_) report.dropped.push_back({sinks, sinks + seen_ - kept});
    return report;
  }

 private:
  bool GetsSink(std::span<const int32_t> window) const {
    return options_.sink_token && !window.empty() && window.front() != *options_.sink_token;
  }

  // The beginning of the window that ends where the text does.
  int64_t BeginOf(std::span<const int32_t> text) const {
    const int64_t begin = std::max<int64_t>(0, std::ssize(text) - options_.window);
    const auto window = text.subspan(begin);
    return std::ssize(window) == options_.window && GetsSink(window) ? begin + 1 : begin;
  }

  // The number of the text's first tokens that fit into one window.
  int64_t FirstWindow(std::span<const int32_t> text) const {
    return std::min(std::ssize(text), options_.window - (GetsSink(text) ? 1 : 0));
  }

  void Note(std::span<const int32_t> read) { seen_ = std::ssize(read) + (GetsSink(read) ? 1 : 0); }

  // Cuts the result at the first stop string.
  static void CutAtStop(std::span<const std::string> stops, GenerateResult& result) {
    size_t end = std::string::npos;
    for (const std::string& stop : stops) {
      const size_t at = result.text.find(stop);
      if (at >= end) continue;
      end = at;
      result.stop = stop;
    }
    if (end == std::string::npos) return;
    result.text.resize(end);
    result.finish_reason = FinishReason::kStop;
  }

  Session& session_;
  const RecomputeOptions options_;
  int64_t seen_ = 0;  // tokens of the last reading, with its sink token
};

}  // namespace

SessionOptions WindowSession(SessionOptions options, int64_t window, bool generates) {
  options.kv = "dense";
  options.context_tokens = window + (generates ? 1 : 0);
  return options;
}

Reader Recompute(Session& session, const RecomputeOptions& options) {
  const auto windows = std::make_shared<Windows>(session, options);
  Reader reader;
  reader.logits = [windows](std::span<const int32_t> tokens, const Reader::OnRow& row,
                            int64_t first, const Reader::OnProgress& on_progress) {
    windows->Logits(tokens, row, first, on_progress);
  };
  reader.generate = [windows](std::span<const int32_t> prompt, const GenerateOptions& generate) {
    return windows->Generate(prompt, generate);
  };
  reader.kv = [windows] { return windows->Kv(); };
  reader.limit_tokens = [] { return INT64_MAX; };
  return reader;
}

Reader Recompute(Session& session, const Engine& engine, int64_t window) {
  return Recompute(
      session,
      {.window = window, .sink_token = engine.sink_token(), .decode = CoderOf(engine).decode});
}

}  // namespace godwit::eval
