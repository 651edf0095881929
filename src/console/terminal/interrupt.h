// What Ctrl-C and its kin do. A process has one handler for it, so this state is global; it is set
// from the main thread only.
#pragma once

#include <csignal>
#include <iterator>

namespace godwit::console {

// First thing in main. Ctrl-C leaves at once, with exit code 130: while a program starts, loads a
// model or reads its input. SIGTERM and SIGHUP end the process as they do by default, unless the
// caller has them ignored; all of them take away what is unfinished (clean_up.h).
void HandleSignals();

// While it lives, Ctrl-C calls `running.Cancel()`, of a Session or a CancelToken, which a signal
// handler may; pressed `presses_to_exit` times, it leaves at once. Afterwards it does what it did
// before.
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

// While it lives, Ctrl-C is only noted, for a line editor. At most one at a time, with nothing of
// the above around it.
class SignalNotes {
 public:
  SignalNotes();  // throws Error(kIo)
  ~SignalNotes();
  SignalNotes(const SignalNotes&) = delete;
  SignalNotes& operator=(const SignalNotes&) = delete;

  // Readable (poll) while there is something to take. A file, because a signal that comes just
  // before a system call does not interrupt it.
  int file() const { return pipe_[0]; }

  // Notes no more: signals do what they did before. What was noted can still be taken.
  void Stop();

  // The oldest signal noted and not yet taken; 0 if there is none.
  int Take();

  // Whether what concerns an editor is noted as well, instead of doing what it did before:
  // SIGWINCH, SIGTSTP (Ctrl-Z), SIGTERM and SIGHUP.
  void NoteAll(bool all);

 private:
  static constexpr int kEditorSignals[] = {SIGWINCH, SIGTSTP, SIGTERM, SIGHUP};

  bool all_ = false;
  struct sigaction before_[std::size(kEditorSignals)]{};
  int pipe_[2];
};

}  // namespace godwit::console
