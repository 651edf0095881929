// TaskMetrics: the scores of a task's questions, summed up in its figures.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "eval/question.h"
#include "eval/score_pair.h"
#include "eval/tasks.h"

namespace godwit::eval {

struct Accuracy {
  double share;  // of questions answered right
  // The standard error of the mean, from the sample's own variance:
  // sqrt(share (1 - share) / (n - 1)). None for n = 1.
  std::optional<double> standard_error;
};

// The accuracy; none for n = 0.
std::optional<Accuracy> AccuracyOf(int64_t right, int64_t n);

// The marks of the answer to one question.
struct Marks {
  double acc = 0,
         acc_norm = 0;  // 1 if the most probable choice is right: in all, and per character
  double nll = 0;       // minus the log-probability of the right one
};

// scores: [choices]. The first of equal choices counts as chosen, as in the harness.
Marks MarksOf(Scoring scoring, const Question& question, std::span<const Score> scores);

class TaskMetrics {
 public:
  explicit TaskMetrics(Scoring scoring) : scoring_(scoring) {}

  void Add(const Question& question, std::span<const Score> scores);

  int64_t n() const { return n_; }

  // The figures. Each is empty if the task has no such figure, or n is 0.
  std::optional<Accuracy> acc() const;
  std::optional<Accuracy> acc_norm() const;
  std::optional<double> chance() const;      // the acc of guessing: the mean of 1 / choices
  std::optional<double> perplexity() const;  // exp of the mean of -log_probability of the choice

 private:
  Scoring scoring_;
  int64_t n_ = 0;
  Marks sum_;
  double chance_sum_ = 0;
};

}  // namespace godwit::eval
