#include "text/text_worker.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "base/system/descriptors.h"

namespace godwit {
namespace {

// The memory limit of a process: its own, or a smaller one that it inherited.
int64_t MemoryLimitMib(int64_t memory_bytes) {
  auto least = static_cast<rlim_t>(memory_bytes);
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit;
    if (getrlimit(resource, &limit) == 0) least = std::min(least, limit.rlim_cur);
  }
  return static_cast<int64_t>(least >> 20);
}

// Calls transfer until bytes have moved; 0: the other end is gone. A cancelled call gives up only
// after a while without bytes: most calls have their answer at once.
template <typename Transfer>
size_t Moved(const CancelToken* cancel, Transfer transfer) {
  while (true) {
    const ssize_t bytes = transfer();
    if (bytes >= 0) return static_cast<size_t>(bytes);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return 0;
    if (cancel != nullptr) cancel->ThrowIfCancelled();
  }
}

bool SendAll(int socket, std::string_view bytes, const CancelToken* cancel) {
  while (!bytes.empty()) {
    const size_t sent =
        Moved(cancel, [&] { return SendQuietly(socket, bytes.data(), bytes.size()); });
    if (sent == 0) return false;
    bytes.remove_prefix(sent);
  }
  return true;
}

// Removes the folders of the path that `what` begins with.
std::string WithoutFolders(const std::string& what) {
  const size_t slash = what.substr(0, what.find('"')).rfind('/');
  return slash == what.npos ? what : what.substr(slash + 1);
}

}  // namespace

TextWorker::TextWorker(std::string what, int64_t memory_bytes, WorkerFrame opening)
    : what_(std::move(what)),
      memory_bytes_(memory_bytes),
      opening_(std::make_shared<const std::string>(opening.Finish())),
      opening_seconds_(opening.seconds()) {}

std::string TextWorker::Open() {
  const auto turn = line_.Wait(0, nullptr);
  return Start(nullptr);
}

std::string TextWorker::Call(std::string_view doing, WorkerFrame request, const CancelToken* cancel,
                             int64_t cost) {
  const auto turn = line_.Wait(cost, cancel != nullptr ? cancel : CancelScope::current());
  if (process_ == nullptr) Start(cancel);
  return Exchange(doing, request.Finish(), request.seconds(), cancel);
}

void TextWorker::Tell(WorkerFrame request) noexcept {
  try {
    const auto turn = line_.Wait(0, nullptr);
    if (process_ != nullptr) {
      Exchange("closing", request.Finish(), request.seconds(), nullptr);
    }
  } catch (const std::exception&) {
    // The process is gone, and its state with it.
  }
}

std::string TextWorker::Start(const CancelToken* cancel) {
  process_ = std::make_unique<WorkerProcess>(memory_bytes_);
  try {
    std::string reply = Exchange("loading", *opening_, opening_seconds_, cancel);
    what_ = WithoutFolders(what_);
    return reply;
  } catch (...) {
    process_.reset();
    throw;
  }
}

std::string TextWorker::Exchange(std::string_view doing, std::string_view request, uint32_t seconds,
                                 const CancelToken* cancel) {
  std::string reply;
  try {
    if (!SendAll(process_->socket(), request, cancel)) ThrowDeath(doing, seconds);
    reply = Receive(doing, seconds, cancel);
  } catch (...) {
    process_.reset();  // half a reply is of no use to the next call
    throw;
  }
  const auto status = static_cast<WorkerStatus>(reply.front());
  reply.erase(0, 1);
  if (status == WorkerStatus::kOk) return reply;
  if (status == WorkerStatus::kPanic) {
    process_.reset();
    Throw(ErrorKind::kFormat, "{}: {} failed, and the library that does it {}", what_, doing,
          reply.empty() ? "gives no reason" : "says: " + Quote(reply));
  }
  Throw(status == WorkerStatus::kRaised ? ErrorKind::kInput : ErrorKind::kFormat, "{}: {}", what_,
        reply);
}

// Receives a reply: the status and the body.
std::string TextWorker::Receive(std::string_view doing, uint32_t seconds,
                                const CancelToken* cancel) {
  // A reply to one token takes one system call.
  char front[4096];
  uint64_t size = 0;
  size_t have = 0;
  const auto receive = [&](char* to, size_t bytes) {
    const size_t moved = Moved(cancel, [&] { return recv(process_->socket(), to, bytes, 0); });
    if (moved == 0) ThrowDeath(doing, seconds);
    return moved;
  };
  while (have < sizeof(size)) have += receive(front + have, sizeof(front) - have);
  std::memcpy(&size, front, sizeof(size));
  have -= sizeof(size);
  // A reply is no larger than the worker's memory limit.
  if (size < std::max<size_t>(have, 1) || size > static_cast<uint64_t>(memory_bytes_)) {
    Throw(ErrorKind::kIo, "{}: a reply of {} bytes from {}", what_, size,
          WorkerProcess::Program().filename().string());
  }
  std::string reply(size, '\0');
  std::memcpy(reply.data(), front + sizeof(size), have);
  while (have < size) have += receive(reply.data() + have, size - have);
  return reply;
}

void TextWorker::ThrowDeath(std::string_view doing, uint32_t seconds) {
  const int status = process_->Wait();
  if (status != -1 && WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGXCPU) {
      Throw(ErrorKind::kFormat, "{}: {} takes more than {} s of processor time", what_, doing,
            seconds);
    }
    Throw(ErrorKind::kIo, "{}: {} was ended by signal {}", what_, doing, WTERMSIG(status));
  }
  const int code = status == -1 ? -1 : WEXITSTATUS(status);
  switch (static_cast<WorkerExit>(code)) {
    case WorkerExit::kNoMemory:
      Throw(ErrorKind::kMemory, "{}: {} takes more than {} MiB of memory", what_, doing,
            MemoryLimitMib(memory_bytes_));
    case WorkerExit::kTooDeep:
      Throw(ErrorKind::kFormat, "{}: {} nests too deeply", what_, doing);
    case WorkerExit::kPanic:
      Throw(ErrorKind::kFormat, "{}: {} failed, and the library that does it gives no reason",
            what_, doing);
    case WorkerExit::kOtherVersion:
      Throw(ErrorKind::kIo, "{} belongs to another version of this program",
            WorkerProcess::Program().string());
  }
  Throw(ErrorKind::kIo, "{}: {} ended early: {} left with exit code {}", what_, doing,
        WorkerProcess::Program().filename().string(), code);
}

}  // namespace godwit
