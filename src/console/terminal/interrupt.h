// Handling of Ctrl-C and other signals. A process has one handler, so this state is global; only
// the main thread sets it.
#pragma once

#include <csignal>
#include <iterator>

namespace godwit::console {

// To be called first in main. From then on Ctrl-C exits at once with code 130, while a program
// starts, loads a model or reads its input. SIGTERM and SIGHUP end the process as by default,
// unless the calling process has them ignored. All of them remove unfinished files (clean_up.h).
void HandleSignals();

// CancelOnInterrupt: while it lives, Ctrl-C calls `running.Cancel()` of a Session or a CancelToken,
// which a signal handler may do. `presses_to_exit` presses exit at once. Afterwards Ctrl-C does
// what it did before.
class CancelOnInterrupt {
 public:
  template <typename Running>
  CancelOnInterrupt(Running& running, int presses_to_exit)
      : CancelOnInterrupt(
            &running, [](void* object) { static_cast<Running*>(object)->Cancel(); },
            presses_to_exit) {}
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;

 private:
  CancelOnInterrupt(void* running, void (*cancel)(void*), int presses_to_exit);
};

// SignalNotes: while it lives, Ctrl-C is only noted, for a line editor. Only one may live at a
// time, outside the scope of a CancelOnInterrupt.
class SignalNotes {
 public:
  SignalNotes();  // throws Error(kIo)
  ~SignalNotes();
  SignalNotes(const SignalNotes&) = delete;
  SignalNotes& operator=(const SignalNotes&) = delete;

  // Readable (poll) while a note can be taken. It is a file, because a signal just before a system
  // call does not interrupt the call.
  int file() const { return pipe_[0]; }

  // Stops noting: signals do what they did before. Earlier notes can still be taken.
  void Stop();

  // The oldest signal noted and not yet taken; 0 if there is none.
  int Take();

  // Whether the editor's signals are noted, too, instead of doing what they did before: SIGWINCH,
  // SIGTSTP (Ctrl-Z), SIGTERM and SIGHUP.
  void NoteAll(bool all);

 private:
  static constexpr int kEditorSignals[] = {SIGWINCH, SIGTSTP, SIGTERM, SIGHUP};

  bool all_ = false;
  struct sigaction before_[std::size(kEditorSignals)]{};
  int pipe_[2];
};

}  // namespace godwit::console
