#include "console/terminal/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/machine_memory.h"
#include "base/utf8.h"
#include "console/options/escape.h"
#include "console/terminal/format.h"
#include "console/terminal/output.h"

namespace godwit::console {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(200);

std::atomic<bool> visible{false};

std::string Amount(ProgressUnit unit, int64_t amount) {
  return unit == ProgressUnit::kBytes ? FormatBytes(amount) : fmt::format("{}", amount);
}

std::string_view Noun(ProgressUnit unit) {
  switch (unit) {
    case ProgressUnit::kBytes:
      return "";
    case ProgressUnit::kTokens:
      return " tokens";
    case ProgressUnit::kTests:
      return " tests";
    case ProgressUnit::kRequests:
      return " requests";
    case ProgressUnit::kSteps:
      return " steps";
  }
  return "";
}

}  // namespace

bool ProgressIsVisible() noexcept { return visible; }

std::optional<double> LeftMs(ProgressUnit unit, const ProgressState& state) {
  std::optional<double> estimate = state.left_ms;
  const bool tells_by_amount = unit != ProgressUnit::kTests && !state.is_reading;
  if (!estimate && tells_by_amount && state.done > state.start) {
    estimate = state.updated_ms * static_cast<double>(state.total - state.done) /
               static_cast<double>(state.done - state.start);
  }
  if (!estimate) return std::nullopt;
  // The estimate is from the last report and counts down. During a long silent piece of work a new
  // estimate would grow.
  const double left_ms = *estimate - (state.elapsed_ms - state.updated_ms);
  return left_ms > 0 ? std::optional(left_ms) : std::nullopt;
}

std::optional<double> Countdown::Next(std::optional<double> left_ms) {
  if (left_ms && shown_ms_) left_ms = std::min(*left_ms, *shown_ms_);
  return shown_ms_ = left_ms;
}

std::string FormatProgress(const std::string& label, ProgressUnit unit, const ProgressState& state,
                           std::optional<double> left_ms) {
  if (state.total <= 0) {
    return fmt::format("{}: {}", label, FormatDuration(state.elapsed_ms / 1000));
  }
  const std::string cached = state.is_reading && state.start > 0
                                 ? fmt::format(" ({} from the cache)", Amount(unit, state.start))
                                 : "";
  std::string line =
      fmt::format("{}: {} of {}{}{}, {}%", label, Amount(unit, state.done),
                  Amount(unit, state.total), Noun(unit), cached, 100 * state.done / state.total);
  if (unit != ProgressUnit::kTests && state.done > state.start && state.updated_ms > 0) {
    const double rate = 1000 * static_cast<double>(state.done - state.start) / state.updated_ms;
    line += unit == ProgressUnit::kBytes
                ? fmt::format(", {}/s", FormatBytes(static_cast<int64_t>(rate)))
                : fmt::format(", {}{}/s", FormatRate(rate), Noun(unit));
  }
  return left_ms ? line + fmt::format(", {} left", FormatDuration(*left_ms / 1000)) : line;
}

ProgressLine::ProgressLine(std::string label, ProgressUnit unit, double patience_ms)
    : label_(ShowEscapes(label)), unit_(unit) {
  if (!NoticesGoToTerminal()) return;
  drawer_ = std::jthread([this, patience_ms](std::stop_token stop) { Draw(stop, patience_ms); });
}

ProgressLine::~ProgressLine() { Finish(); }

void ProgressLine::Update(int64_t done, int64_t total, int64_t start,
                          std::optional<double> left_ms) {
  Set({.done = done, .total = total, .start = start, .left_ms = left_ms});
}

void ProgressLine::UpdateReading(int64_t done, int64_t total, int64_t cached,
                                 std::optional<double> left_ms) {
  Set({.done = done, .total = total, .start = cached, .left_ms = left_ms, .is_reading = true});
}

void ProgressLine::Set(const ProgressState& state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  state_.updated_ms = watch_.ms();
}

void ProgressLine::Begin(std::string_view part) {
  const std::lock_guard lock(mutex_);
  part_ = fmt::format(", {}", ShowEscapes(part));
  watch_ = Stopwatch();
  state_ = {};
}

void ProgressLine::Note(std::string text) {
  const std::lock_guard lock(mutex_);
  note_ = std::move(text);
}

void ProgressLine::Say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  Erase();
  WriteNotice(line + "\n");
}

void ProgressLine::SayResult(const std::string& line) {
  if (NoticesGoToTerminal() && !line.empty()) Say(line);
}

void ProgressLine::Finish() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    Erase();
  }
  drawer_.request_stop();
}

void ProgressLine::Erase() {
  if (visible.exchange(false)) WriteControl("\r\033[K");
}

void ProgressLine::Draw(std::stop_token stop, double patience_ms) {
  // Signals belong to the main thread, whose system calls they should interrupt.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);

  std::unique_lock lock(mutex_);
  auto wait = std::chrono::milliseconds(static_cast<int64_t>(patience_ms));
  while (!changed_.wait_for(lock, stop, wait, [this] { return finished_; }) &&
         !stop.stop_requested()) {
    wait = kRedraw;
    state_.elapsed_ms = watch_.ms();
    std::optional<double> left_ms = LeftMs(unit_, state_);
    if (unit_ == ProgressUnit::kTests) left_ms = countdown_.Next(left_ms);
    std::string line = FormatProgress(label_ + part_, unit_, state_, left_ms);
    if (!note_.empty()) line += "; " + ShowEscapes(note_);
    // A line that wraps could not be erased, and half a character might damage the next one.
    const auto columns = static_cast<size_t>(StatusColumns());
    line.resize(FirstCharacters(line, columns - 1).size());
    visible = true;
    WriteControl("\r" + line + "\033[K");
  }
}

}  // namespace godwit::console
