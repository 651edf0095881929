// ProgressLine: how far some work is, on one line of the terminal that is rewritten in place and
// gone when the work is done.
//
// Shown only when standard error is a terminal and the work takes longer than its patience; a
// thread of its own keeps it moving while the worker is silent. All methods may be called from any
// thread.
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
  int64_t total = 0;  // 0: unknown yet
  int64_t start = 0;  // of `done`, what was there before the work began: not counted in the rate
  double updated_ms = 0;          // from the beginning to the moment at which that was so
  double elapsed_ms = 0;          // from the beginning until now
  std::optional<double> left_ms;  // from that moment on, where the worker knows better
  // `start` came from a cache, and nothing is left to guess where the worker does not know.
  bool is_reading = false;
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

// "reading the prompt: 512 of 2048 tokens (256 from the cache), 25%, 341 tokens/s, 0:04 left"
std::string FormatProgress(const std::string& label, ProgressUnit unit, const ProgressState& state,
                           std::optional<double> left_ms);

class ProgressLine {
 public:
  ProgressLine(std::string label, ProgressUnit unit, double patience_ms = 1000);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // left_ms: as ProgressState has it.
  void Update(int64_t done, int64_t total, int64_t start = 0, std::optional<double> left_ms = {});

  // Of a text of which `cached` tokens were there before. Its reader alone foretells the rest.
  void UpdateReading(int64_t done, int64_t total, int64_t cached, std::optional<double> left_ms);

  // The work has another part, which begins now: its name stands behind the label.
  void Begin(std::string_view part);

  // What came of the work so far, behind how far it is.
  void Note(std::string text);

  // Prints a line that stays, above the progress.
  void Say(const std::string& line);
  // Likewise, what a part of the work came to; only where a terminal shows progress, too.
  void SayResult(const std::string& line);

  // Takes the line away; it does not come back. Other text may then be printed.
  void Finish();

 private:
  void Set(const ProgressState& state);
  void Draw(std::stop_token stop, double patience_ms);
  void Erase();  // with mutex_ held

  const std::string label_;
  std::string part_;  // empty: there is one
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
