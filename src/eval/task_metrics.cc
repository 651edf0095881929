#include "eval/task_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace godwit::eval {
namespace {

// The number of code points, which is Python's len. The text comes from JSON and is valid UTF-8.
double Characters(const std::string& text) {
  return static_cast<double>(std::ranges::count_if(text, std::not_fn(ContinuesCharacter)));
}

size_t Largest(const std::vector<double>& values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

std::optional<Accuracy> AccuracyOf(int64_t right, int64_t n) {
  if (n == 0) return std::nullopt;
  const double share = static_cast<double>(right) / static_cast<double>(n);
  if (n == 1) return Accuracy{.share = share};
  return Accuracy{.share = share,
                  .standard_error = std::sqrt(share * (1 - share) / static_cast<double>(n - 1))};
}

Marks MarksOf(Scoring scoring, const Question& question, std::span<const Score> scores) {
  Marks marks{.nll = -scores[question.gold].log_probability};
  if (scoring == Scoring::kLastWord) {
    marks.acc = scores[question.gold].greedy ? 1 : 0;
    return marks;
  }
  std::vector<double> sums;
  std::vector<double> per_character;
  for (size_t i = 0; i < scores.size(); ++i) {
    sums.push_back(scores[i].log_probability);
    per_character.push_back(sums.back() / Characters(question.choices[i].answer));
  }
  marks.acc = Largest(sums) == question.gold ? 1 : 0;
  marks.acc_norm = Largest(per_character) == question.gold ? 1 : 0;
  return marks;
}

void TaskMetrics::Add(const Question& question, std::span<const Score> scores) {
  const Marks marks = MarksOf(scoring_, question, scores);
  ++n_;
  sum_.acc += marks.acc;
  sum_.acc_norm += marks.acc_norm;
  sum_.nll += marks.nll;
  chance_sum_ += 1.0 / static_cast<double>(scores.size());
}

std::optional<Accuracy> TaskMetrics::acc() const {
  return AccuracyOf(static_cast<int64_t>(sum_.acc), n_);
}

std::optional<Accuracy> TaskMetrics::acc_norm() const {
  if (scoring_ != Scoring::kNormalizedChoice) return std::nullopt;
  return AccuracyOf(static_cast<int64_t>(sum_.acc_norm), n_);
}

std::optional<double> TaskMetrics::chance() const {
  if (n_ == 0 || scoring_ == Scoring::kLastWord) return std::nullopt;
  return chance_sum_ / static_cast<double>(n_);
}

std::optional<double> TaskMetrics::perplexity() const {
  if (n_ == 0 || scoring_ != Scoring::kLastWord) return std::nullopt;
  return std::exp(sum_.nll / static_cast<double>(n_));
}

}  // namespace godwit::eval
