#include "cli/terminal/progress_line.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/machine_memory.h"
#include "cli/options/escape.h"
#include "cli/terminal/format.h"
#include "cli/terminal/output.h"

namespace godwit::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kRedraw = std::chrono::milliseconds(200);

std::atomic<bool> visible{false};

std::string Amount(ProgressUnit unit, int64_t amount) {
  return unit == ProgressUnit::kBytes ? FormatBytes(amount) : fmt::format("{}", amount);
}

std::string_view Noun(ProgressUnit unit) {
  if (unit == ProgressUnit::kTokens) return " tokens";
  return unit == ProgressUnit::kTests ? " tests" : "";
}

}  // namespace

bool ProgressIsVisible() noexcept { return visible; }

std::string FormatProgress(const std::string& label, ProgressUnit unit,
                           const ProgressState& state) {
  const double seconds = state.elapsed_ms / 1000;
  if (state.total <= 0) return fmt::format("{}: {}", label, FormatDuration(seconds));
  std::string line =
      fmt::format("{}: {} of {}{}, {}%", label, Amount(unit, state.done), Amount(unit, state.total),
                  Noun(unit), 100 * state.done / state.total);
  const double rate = seconds > 0 ? static_cast<double>(state.done - state.start) / seconds : 0;
  if (rate <= 0) return line;
  if (unit == ProgressUnit::kBytes) {
    line += fmt::format(", {}/s", FormatBytes(static_cast<int64_t>(rate)));
  } else if (unit == ProgressUnit::kTokens) {
    line += fmt::format(", {} tokens/s", FormatRate(rate));
  }
  const double left = static_cast<double>(state.total - state.done) / rate;
  return line + fmt::format(", {} left", FormatDuration(left));
}

ProgressLine::ProgressLine(std::string label, ProgressUnit unit)
    : label_(ShowEscapes(label)), unit_(unit) {
  if (NoticesGoToTerminal()) drawer_ = std::jthread([this](std::stop_token stop) { Draw(stop); });
}

ProgressLine::~ProgressLine() { Finish(); }

void ProgressLine::Update(int64_t done, int64_t total, int64_t start) {
  const std::lock_guard lock(mutex_);
  state_.done = done;
  state_.total = total;
  state_.start = start;
}

void ProgressLine::Say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  Erase();
  WriteNotice(line + "\n");
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

void ProgressLine::Draw(std::stop_token stop) {
  // Signals are the main thread's: it may be waiting in a system call that they should interrupt.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);

  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience);
  while (!changed_.wait_for(lock, stop, wait, [this] { return finished_; }) &&
         !stop.stop_requested()) {
    wait = kRedraw;
    state_.elapsed_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    std::string line = FormatProgress(label_, unit_, state_);
    // A line that wraps could not be taken back, and half a character might take the next with it.
    const auto columns = static_cast<size_t>(StatusColumns());
    if (line.size() >= columns) {
      size_t end = columns - 1;
      while (end > 0 && (line[end] & 0xc0) == 0x80) --end;
      line.resize(end);
    }
    visible = true;
    WriteControl("\r" + line + "\033[K");
  }
}

}  // namespace godwit::cli
