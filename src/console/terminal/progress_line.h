// ProgressLine: how far some work is, on one line of the terminal that is rewritten in place and
// gone when the work is done.
//
// Shown only when standard error is a terminal and the work takes longer than a second; a thread of
// its own keeps it moving while the worker is silent. All methods may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/stopwatch.h"

namespace godwit::console {

enum class ProgressUnit { kBytes, kTokens, kTests, kRequests, kSteps };

struct ProgressState {
  int64_t done = 0;
  int64_t total = 0;  // 0: unknown yet
  int64_t start = 0;  // of `done`, what was there before the work began: not counted in the rate
  double updated_ms = 0;          // from the beginning to the moment at which that was so
  double elapsed_ms = 0;          // from the beginning until now
  std::optional<double> left_ms;  // from that moment on, where the worker knows better
};

// How long the rest should take from now on, if that is known and not over. Tests differ too much
// in length to tell by their number.
std::optional<double> LeftMs(ProgressUnit unit, const ProgressState& state);

// What a line says is left, where the same work is measured again and again: a later estimate that
// is longer is noise, and the line waits for it. One that has run out begins anew.
class Countdown {
 public:
  std::optional<double> Next(std::optional<double> left_ms);

 private:
  std::optional<double> shown_ms_;
};

// "reading the prompt: 512 of 2048 tokens, 25%, 341 tokens/s, 0:04 left"
std::string FormatProgress(const std::string& label, ProgressUnit unit, const ProgressState& state,
                           std::optional<double> left_ms);

class ProgressLine {
 public:
  ProgressLine(std::string label, ProgressUnit unit);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // left_ms: as ProgressState has it.
  void Update(int64_t done, int64_t total, int64_t start = 0, std::optional<double> left_ms = {});

  // Prints a line that stays, above the progress.
  void Say(const std::string& line);

  // Takes the line away; it does not come back. Other text may then be printed.
  void Finish();

 private:
  void Draw(std::stop_token stop);
  void Erase();  // with mutex_ held

  const std::string label_;
  const ProgressUnit unit_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  const Stopwatch watch_;
  ProgressState state_;
  Countdown countdown_;
  bool finished_ = false;
  std::jthread drawer_;  // last: it uses the others
};

// Whether a progress line stands on the terminal. For the signal handler.
bool ProgressIsVisible() noexcept;

}  // namespace godwit::console
