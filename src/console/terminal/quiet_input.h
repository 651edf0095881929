// QuietInput: what is typed while a text streams does not show up inside it.
//
// It waits, unread and with its Enters, for whoever reads the terminal next: the line editor of a
// chat, or the shell. Ctrl-C and Ctrl-Z do what they always do; a stopped program leaves the
// terminal as it found it. Does nothing where standard input is no terminal, or another job's.
#pragma once

namespace godwit::console {

class QuietInput {
 public:
  QuietInput();
  ~QuietInput();
  QuietInput(const QuietInput&) = delete;
  QuietInput& operator=(const QuietInput&) = delete;
};

// For signal handlers that end the process.
void RestoreInput() noexcept;

}  // namespace godwit::console
