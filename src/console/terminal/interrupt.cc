#include "console/terminal/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/error.h"
#include "base/system/descriptors.h"
#include "console/exit_code.h"
#include "console/terminal/clean_up.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "console/terminal/quiet_input.h"

namespace godwit::console {
namespace {

// The handler's state: lock-free atomics, which are all that a handler may touch.
std::atomic<void*> to_cancel{nullptr};
std::atomic<void (*)(void*)> how_to_cancel{nullptr};  // set before to_cancel
std::atomic<int> exit_after{1};                       // presses
std::atomic<int> presses{0};
std::atomic<int> note_file{-1};
static_assert(std::atomic<void*>::is_always_lock_free &&
              std::atomic<void (*)(void*)>::is_always_lock_free &&
              std::atomic<int>::is_always_lock_free);

// Notes a signal. A full pipe loses the note; it then holds thousands.
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

// Cleans up half-drawn output and half-written files when a signal ends the process.
void TidyUp() {
  RestoreInput();
  if (isatty(STDERR_FILENO) == 1) WriteControl(ProgressIsVisible() ? "\r\033[K" : "\n");
  RemoveUnfinished();
}

// Ends the process by the signal itself, so that the caller learns it: a shell reports 128 and its
// number.
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
  // The handler is set even if the caller ignores the signal, as shells do for background commands
  // of a script. `kill -INT` then still works.
  SetHandler(SIGINT, OnInterrupt);
  for (const int signal : {SIGTERM, SIGHUP}) {
    struct sigaction inherited {};
    sigaction(signal, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) SetHandler(signal, OnTermination);  // otherwise nohup
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
  if (!OpenPipe(pipe_, /*blocks=*/false)) {
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
