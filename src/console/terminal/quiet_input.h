// QuietInput: hides text that is typed while an answer is printed.
//
// Typed text waits, unread and with its Enters, for the next reader of the terminal: the line
// editor of a chat, or the shell. Ctrl-C and Ctrl-Z work as always, and a stopped program leaves
// the terminal as it found it. Nothing happens where standard input is no terminal, or another
// job's.
#pragma once

namespace godwit::console {

class QuietInput {
 public:
  QuietInput();
  ~QuietInput();
  QuietInput(const QuietInput&) = delete;
  QuietInput& operator=(const QuietInput&) = delete;
};

// Restores the terminal, for signal handlers that end the process.
void RestoreInput() noexcept;

}  // namespace godwit::console
