// WorkerProcess: godwit-text as a child, with a socket to it as its standard input.
//
// It is a process group of its own, so that a terminal's Ctrl-C and Ctrl-Z reach only the parent.
// It ends by itself when the parent is gone, however that ended. Destroying the object ends it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>

namespace godwit {

// The place where godwit-text was built or installed: absolute, or as seen from the folder of the
// running program. A program that links this library defines it (cmake/text_program.cc.in), or
// CMake does.
extern const char* const kTextProgram;

class WorkerProcess {
 public:
  // Throws Error(kIo), or Error(kMemory), with the reason of the operating system.
  explicit WorkerProcess(int64_t memory_bytes);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // The program: beside the running one, if it is there, else kTextProgram.
  static std::filesystem::path Program();

  // A stream socket. Sending and receiving come back with EAGAIN every 50 ms.
  int socket() const { return socket_; }

  // Waits for a process whose side of the socket is closed. The status is that of waitpid, or -1
  // where the embedding program has reaped it.
  int Wait();

 private:
  int socket_;
  pid_t pid_ = -1;
};

}  // namespace godwit
