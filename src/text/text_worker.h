// TextWorker: programs of a model's files, run in a process of their own (godwit-text).
//
// A tokenizer.json and a chat template are programs by the model's publisher. They can ask for all
// memory, compute without end, or recurse until the stack is full. The Rust libraries that run them
// abort then, or never return. They therefore get a process with limits: of memory, of processor
// time for each request, of depth. Exceeding a limit is an Error of one sentence; the next call
// starts a new process and opens the same file there. The worker guards against files that take too
// much, not against a hole in the libraries: it may do what its user may do.
//
// Any number of threads may call; one is served at a time, those with little work first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/cancel.h"
#include "base/shortest_first_lock.h"
#include "text/worker_process.h"
#include "text/worker_protocol.h"

namespace godwit {

class TextWorker {
 public:
  // `what` names the file in messages, with its folders while it is opened; `opening` is sent to
  // every new process first. Nothing is started yet.
  TextWorker(std::string what, int64_t memory_bytes, WorkerFrame opening);

  // Starts the first process and returns its reply to the opening.
  std::string Open();

  // Returns the body of the reply. `doing` names the request in messages. Throws Error(kInput)
  // where the template refuses its messages, Error(kMemory) where memory runs out, and Error(kIo)
  // where no process can be had. Throws Error(kCancelled) within 100 ms of a Cancel(), and
  // Error(kFormat) for all else.
  //
  // cost: of ShortestFirstLock. A call whose CancelScope is cancelled waits no longer. Once it has
  // its turn, the call is made: giving it up costs the process, which others need.
  std::string Call(std::string_view doing, WorkerFrame request, const CancelToken* cancel = nullptr,
                   int64_t cost = 0);

  // A worker of the same file, with a process of its own.
  std::unique_ptr<TextWorker> Another() const {
    return std::unique_ptr<TextWorker>(new TextWorker(*this));
  }

  // Tells the running process, if there is one, facts that only it need know. Throws nothing.
  void Tell(WorkerFrame request) noexcept;

 private:
  TextWorker(const TextWorker& other)
      : what_(other.what_),
        memory_bytes_(other.memory_bytes_),
        opening_(other.opening_),
        opening_seconds_(other.opening_seconds_) {}

  std::string Start(const CancelToken* cancel);
  // request: a finished frame, which may take so many seconds.
  std::string Exchange(std::string_view doing, std::string_view request, uint32_t seconds,
                       const CancelToken* cancel);
  std::string Receive(std::string_view doing, uint32_t seconds, const CancelToken* cancel);
  [[noreturn]] void ThrowDeath(std::string_view doing, uint32_t seconds);

  // Once it is open, without the folders it lies in: errors of requests go to clients of a server.
  std::string what_;
  const int64_t memory_bytes_;
  std::shared_ptr<const std::string> opening_;  // finished
  uint32_t opening_seconds_;
  ShortestFirstLock line_;  // to all below
  std::unique_ptr<WorkerProcess> process_;
};

}  // namespace godwit
