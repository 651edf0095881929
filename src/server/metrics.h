// Metrics: counts and times of a server's work so far, as Prometheus reads them. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace godwit::server {

struct ServedRequest;

// Counts of values up to each bound.
class Histogram {
 public:
  static constexpr std::array kBounds = {0.001, 0.0025, 0.005, 0.01,  0.025,  0.05,
                                         0.1,   0.25,   0.5,   1.0,   2.5,    5.0,
                                         10.0,  30.0,   60.0,  300.0, 1800.0, 7200.0};
  void Add(double value);
  // The histogram in lines, under that name.
  std::string Text(std::string_view name, std::string_view help) const;

 private:
  std::array<int64_t, kBounds.size() + 1> counts_{};  // between neighbouring bounds
  double sum_ = 0;
};

// Current values of one kind, each of a thing with a name.
struct LabelledGauge {
  std::string_view name, help;
  std::vector<std::pair<std::string, int64_t>> values;

  // label: the kind of thing, such as "model".
  std::string Text(std::string_view label) const;
};

class Metrics {
 public:
  void Add(const ServedRequest& served);

  // The text for Prometheus, format version 0.0.4. gauges: current values by names.
  std::string Text(std::span<const std::pair<std::string_view, int64_t>> gauges) const;

 private:
  mutable std::mutex mutex_;
  // By path, model and status.
  std::map<std::tuple<std::string, std::string, int>, int64_t> requests_;
  int64_t gone_ = 0, prompt_tokens_ = 0, cached_tokens_ = 0, disk_tokens_ = 0, output_tokens_ = 0;
  Histogram request_seconds_, first_token_seconds_, token_seconds_;
};

}  // namespace godwit::server
