// ProgressLine: the progress of work on one line of the terminal, rewritten in place and removed at
// the end.
//
// The line is shown only if standard error is a terminal and the work takes longer than the line's
// patience. A thread of its own redraws it while the worker is silent. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/stopwatch.h"

namespace godwit::console {

enum class ProgressUnit { kBytes, kTokens, kTests, kRequests, kSteps };

struct ProgressState {
  int64_t done = 0;
  int64_t total = 0;      // 0: unknown yet
  int64_t start = 0;      // the part of `done` from before the work began: not counted in the rate
  double updated_ms = 0;  // from the beginning to the last update
  double elapsed_ms = 0;  // from the beginning to now
  std::optional<double> left_ms;  // from the last update on, where the worker knows better
  // Whether a prompt is read: `start` came from a cache, and only the worker can estimate the rest.
  bool is_reading = false;
};

// The expected time for the rest from now on, if it is known and not over. The number of tests does
// not tell it, because tests differ too much in length.
std::optional<double> LeftMs(ProgressUnit unit, const ProgressState& state);

// Countdown: the time left as a line shows it, where the same work is measured repeatedly. A longer
// later estimate is noise, and the shown time waits for it. After an estimate has run out, the next
// one is shown as it is.
class Countdown {
 public:
  std::optional<double> Next(std::optional<double> left_ms);

 private:
  std::optional<double> shown_ms_;
};

// "reading the prompt: 512 of 2048 tokens (256 from the cache), 25%, 341 tokens/s, 0:04 left"
std::string FormatProgress(const std::string& label, ProgressUnit unit, const ProgressState& state,
                           std::optional<double> left_ms);

class ProgressLine {
 public:
  ProgressLine(std::string label, ProgressUnit unit, double patience_ms = 1000);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // left_ms: as in ProgressState.
  void Update(int64_t done, int64_t total, int64_t start = 0, std::optional<double> left_ms = {});

  // Updates the reading of a text, of which `cached` tokens were there before. Only left_ms
  // foretells the rest.
  void UpdateReading(int64_t done, int64_t total, int64_t cached, std::optional<double> left_ms);

  // Begins another part of the work, whose name stands behind the label.
  void Begin(std::string_view part);

  // Sets a note about results so far, which stands behind the progress.
  void Note(std::string text);

  // Prints a line that stays, above the progress.
  void Say(const std::string& line);
  // Prints the result of a part of the work in the same way, but only where progress can be shown.
  void SayResult(const std::string& line);

  // Removes the line for good. Other text may then be printed.
  void Finish();

 private:
  void Set(const ProgressState& state);
  void Draw(std::stop_token stop, double patience_ms);
  void Erase();  // with mutex_ held

  const std::string label_;
  std::string part_;  // empty: the work has one part
  std::string note_;
  const ProgressUnit unit_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  Stopwatch watch_;
  ProgressState state_;
  Countdown countdown_;
  bool finished_ = false;
  std::jthread drawer_;  // last: it uses the others
};

// Whether a progress line stands on the terminal. For the signal handler.
bool ProgressIsVisible() noexcept;

}  // namespace godwit::console
