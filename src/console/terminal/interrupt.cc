#include "console/terminal/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/error.h"
#include "console/exit_code.h"
#include "console/terminal/clean_up.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "console/terminal/quiet_input.h"

namespace godwit::console {
namespace {

// All that the handler looks at. Lock-free atomics are what a handler may touch.
std::atomic<void*> to_cancel{nullptr};
std::atomic<void (*)(void*)> how_to_cancel{nullptr};  // set before
std::atomic<int> exit_after{1};                       // presses
std::atomic<int> presses{0};
std::atomic<int> note_file{-1};
static_assert(std::atomic<void*>::is_always_lock_free &&
              std::atomic<void (*)(void*)>::is_always_lock_free &&
              std::atomic<int>::is_always_lock_free);

// A full pipe loses the note; it then holds thousands.
void Note(int signal) {
  const char byte = static_cast<char>(signal);
  (void)!write(note_file, &byte, 1);
}

extern "C" void OnNotedSignal(int signal) {
  const int saved_errno = errno;
  Note(signal);
  errno = saved_errno;
}

void SetHandler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

// What stands half-drawn or half-written when a signal ends the process.
void TidyUp() {
  RestoreInput();
  if (isatty(STDERR_FILENO) == 1) WriteControl(ProgressIsVisible() ? "\r\033[K" : "\n");
  RemoveUnfinished();
}

// The caller learns which signal it was: a shell reports 128 and its number.
extern "C" void OnTermination(int signal) {
  TidyUp();
  SetHandler(signal, SIG_DFL);
  raise(signal);
}

extern "C" void OnInterrupt(int /*signal*/) {
  const int saved_errno = errno;
  void* const running = to_cancel;
  if (running == nullptr && note_file >= 0) {
    Note(SIGINT);
  } else if (++presses >= exit_after) {
    TidyUp();
    _exit(kExitCancelled);
  } else if (running != nullptr) {
    how_to_cancel.load()(running);
  }
  errno = saved_errno;
}

}  // namespace

void HandleSignals() {
  // Set even where the caller has it ignored, as shells do for what a script starts with &:
  // `kill -INT` then still works.
  SetHandler(SIGINT, OnInterrupt);
  for (const int signal : {SIGTERM, SIGHUP}) {
    struct sigaction inherited {};
    sigaction(signal, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) SetHandler(signal, OnTermination);  // else nohup
  }
}

CancelOnInterrupt::CancelOnInterrupt(void* running, void (*cancel)(void*), int presses_to_exit) {
  presses = 0;
  exit_after = presses_to_exit;
  how_to_cancel = cancel;
  to_cancel = running;
}

CancelOnInterrupt::~CancelOnInterrupt() {
  to_cancel = nullptr;
  exit_after = 1;
}

SignalNotes::SignalNotes() {
  if (pipe2(pipe_, O_NONBLOCK | O_CLOEXEC) != 0) {
    Throw(ErrorKind::kIo, "cannot make a pipe: {}", std::generic_category().message(errno));
  }
  note_file = pipe_[1];
}

void SignalNotes::Stop() {
  NoteAll(false);
  note_file = -1;
}

SignalNotes::~SignalNotes() {
  Stop();
  close(pipe_[0]);
  close(pipe_[1]);
}

int SignalNotes::Take() {
  char signal = 0;
  return read(pipe_[0], &signal, 1) == 1 ? signal : 0;
}

void SignalNotes::NoteAll(bool all) {
  if (all == all_) return;
  all_ = all;
  for (size_t i = 0; i < std::size(kEditorSignals); ++i) {
    if (all) {
      sigaction(kEditorSignals[i], nullptr, &before_[i]);
      SetHandler(kEditorSignals[i], OnNotedSignal);
    } else {
      sigaction(kEditorSignals[i], &before_[i], nullptr);
    }
  }
}

}  // namespace godwit::console
