#include "console/terminal/quiet_input.h"

#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace godwit::console {
namespace {

// The terminal's state before, set before the handler that reads it.
termios as_found;
std::atomic<bool> quiet{false};

// Whether the process is in the foreground: a background job that touches the terminal is stopped.
bool OwnsTerminal() { return tcgetpgrp(STDIN_FILENO) == getpgrp(); }

void SetQuiet() {
  termios silent = as_found;
  // Without line mode an unfinished line waits for the editor, too.
  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);
  silent.c_cc[VMIN] = 1;
  silent.c_cc[VTIME] = 0;
  quiet = tcsetattr(STDIN_FILENO, TCSANOW, &silent) == 0;
}

extern "C" void OnStop(int /*signal*/) {
  const int saved_errno = errno;
  RestoreInput();
  raise(SIGSTOP);
  if (OwnsTerminal()) SetQuiet();
  errno = saved_errno;
}

void HandleStop(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTSTP, &action, nullptr);
}

}  // namespace

QuietInput::QuietInput() {
  if (!OwnsTerminal() || tcgetattr(STDIN_FILENO, &as_found) != 0) return;
  SetQuiet();
  HandleStop(OnStop);
}

QuietInput::~QuietInput() {
  if (!quiet) return;
  HandleStop(SIG_DFL);
  RestoreInput();
}

void RestoreInput() noexcept {
  if (quiet.exchange(false)) (void)tcsetattr(STDIN_FILENO, TCSANOW, &as_found);
}

}  // namespace godwit::console
