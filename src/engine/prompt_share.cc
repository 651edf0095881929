#include "engine/prompt_share.h"

#include <algorithm>

#include "base/error.h"

namespace godwit {
namespace {

// Fewer rows make poor use of the weights that are read for them.
constexpr int64_t kFewestRows = 16;
// Steps after which the time of a step without prompts is measured anew.
constexpr int64_t kMeasureEvery = 32;
// A step may count as at most this many times the expected time of its rows. Interruptions cause
// the rest.
constexpr double kInterrupted = 4;
// Weights of the last measurement. A step of writers right after prompts finds other data in the
// caches of the processor, so a longer time hardly counts.
constexpr double kWeight = 0.5;
constexpr double kWeightOfLonger = 0.1;

double Average(double known, double next, double weight_of_longer) {
  if (known == 0) return next;
  return known + (next > known ? weight_of_longer : kWeight) * (next - known);
}

}  // namespace

void CheckPromptSlowdown(double slowdown) {
  if (slowdown == 0 || (slowdown >= 1.1 && slowdown <= 100)) return;
  Throw(ErrorKind::kInput, "a prompt slowdown of {}: expected 1.1 to 100, or 0 for no limit",
        slowdown);
}

bool PromptShare::WritersChanged(int64_t writers) const {
  return writers > 2 * measured_writers_ || 2 * writers < measured_writers_;
}

int64_t PromptShare::Rows(int64_t writers, int64_t most) {
  if (slowdown_ == 0) return most;
  writers_ = writers;
  if (writers == 0) {
    credit_ms_ = 0;
    return most;
  }
  if (WritersChanged(writers) || steps_ >= kMeasureEvery) return 0;
  const int64_t fewest = std::min(kFewestRows, most);
  if (row_ms_ == 0) return fewest;
  const double affordable = (credit_ms_ + (slowdown_ - 1) * alone_ms_) / row_ms_;
  if (affordable < static_cast<double>(fewest)) return 0;
  // The time of more rows is unknown before they are tried.
  const int64_t known = std::min(most, std::max(2 * last_rows_, fewest));
  return affordable < static_cast<double>(known) ? static_cast<int64_t>(affordable) : known;
}

void PromptShare::RecordStep(double ms, int64_t prompt_rows) {
  if (slowdown_ == 0 || writers_ == 0) return;
  ++steps_;
  if (prompt_rows == 0) {
    alone_ms_ = WritersChanged(writers_) ? ms : Average(alone_ms_, ms, kWeightOfLonger);
    measured_writers_ = writers_;
    steps_ = 0;
  } else {
    const auto rows = static_cast<double>(prompt_rows);
    if (row_ms_ > 0) ms = std::min(ms, alone_ms_ + kInterrupted * rows * row_ms_);
    row_ms_ = Average(row_ms_, std::max(ms - alone_ms_, alone_ms_ * 1e-6) / rows, kWeight);
    last_rows_ = prompt_rows;
  }
  // Credit is saved for the fewest rows, never for a long step.
  const double max_ms = std::max(0.0, kFewestRows * row_ms_ - (slowdown_ - 1) * alone_ms_);
  credit_ms_ = std::min(credit_ms_ + slowdown_ * alone_ms_ - ms, max_ms);
}

}  // namespace godwit
