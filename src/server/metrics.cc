#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/api.h"

namespace godwit::server {
namespace {

std::string Head(std::string_view name, std::string_view help, std::string_view type) {
  return fmt::format("# HELP godwit_{0} {1}\n# TYPE godwit_{0} {2}\n", name, help, type);
}

std::string Counter(std::string_view name, std::string_view help, int64_t value) {
  return Head(name, help, "counter") + fmt::format("godwit_{} {}\n", name, value);
}

// The value of a label.
std::string Escaped(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c == '\n' ? "\\n" : std::string(1, c);
  }
  return escaped;
}

}  // namespace

void Histogram::Add(double value) {
  const auto bound = std::ranges::lower_bound(kBounds, value);
  ++counts_[bound - kBounds.begin()];
  sum_ += value;
}

std::string Histogram::Text(std::string_view name, std::string_view help) const {
  std::string text = Head(name, help, "histogram");
  int64_t count = 0;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    count += counts_[i];
    text += fmt::format("godwit_{}_bucket{{le=\"{}\"}} {}\n", name, kBounds[i], count);
  }
  count += counts_.back();
  return text + fmt::format(
                    "godwit_{0}_bucket{{le=\"+Inf\"}} {1}\ngodwit_{0}_sum {2}\n"
                    "godwit_{0}_count {1}\n",
                    name, count, sum_);
}

std::string LabelledGauge::Text(std::string_view label) const {
  std::string text = Head(name, help, "gauge");
  for (const auto& [of, value] : values) {
    text += fmt::format("godwit_{}{{{}=\"{}\"}} {}\n", name, label, Escaped(of), value);
  }
  return text;
}

void Metrics::Add(const ServedRequest& served) {
  const CompletionOutcome& came = served.completion;
  const std::lock_guard lock(mutex_);
  ++requests_[{served.path, served.model, served.status}];
  if (served.gone) ++gone_;
  prompt_tokens_ += came.prompt_tokens;
  cached_tokens_ += came.cached_tokens;
  disk_tokens_ += came.disk_tokens;
  output_tokens_ += came.output_tokens;
  if (came.output_tokens == 0) return;
  request_seconds_.Add(served.ms / 1000);
  first_token_seconds_.Add(came.first_token_ms / 1000);
  if (came.token_ms > 0) token_seconds_.Add(came.token_ms / 1000);
}

std::string Metrics::Text(std::span<const std::pair<std::string_view, int64_t>> gauges) const {
  const std::lock_guard lock(mutex_);
  std::string text = Head("requests_total", "answered requests", "counter");
  for (const auto& [request, count] : requests_) {
    const auto& [path, model, status] = request;
    const std::string of = model.empty() ? "" : fmt::format("model=\"{}\",", Escaped(model));
    text += fmt::format("godwit_requests_total{{{}path=\"{}\",status=\"{}\"}} {}\n", of, path,
                        status, count);
  }
  text += Counter("requests_left_total", "requests whose client left before the end of the answer",
                  gone_);
  text += Counter("prompt_tokens_total", "tokens of prompts", prompt_tokens_);
  text += Counter("cached_tokens_total", "tokens of prompts that were cached", cached_tokens_);
  text += Counter("disk_tokens_total", "tokens of prompts that were cached on disk", disk_tokens_);
  text += Counter("output_tokens_total", "tokens of answers", output_tokens_);
  text +=
      request_seconds_.Text("request_seconds", "seconds from a request to the end of its answer");
  text +=
      first_token_seconds_.Text("first_token_seconds", "seconds from a request to its first token");
  text += token_seconds_.Text("token_seconds", "mean seconds between two tokens of an answer");
  for (const auto& [name, value] : gauges) {
    text += Head(name, "the current value", "gauge") + fmt::format("godwit_{} {}\n", name, value);
  }
  return text;
}

}  // namespace godwit::server
