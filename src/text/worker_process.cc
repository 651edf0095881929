#include "text/worker_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/system/descriptors.h"
#include "base/system/self.h"
#include "text/worker_protocol.h"

namespace godwit {
namespace {

[[noreturn]] void ThrowStart(int error) {
  Throw(error == ENOMEM ? ErrorKind::kMemory : ErrorKind::kIo, "cannot start {}: {}",
        WorkerProcess::Program().string(), std::generic_category().message(error));
}

// Settings in posix_spawn's form, freed by the destructor.
struct SpawnSettings {
  SpawnSettings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

// Resets signals to what a shell would set: none ignored, none blocked.
void ResetSignals(posix_spawnattr_t& attributes) {
  sigset_t signals;
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
}

}  // namespace

std::filesystem::path WorkerProcess::Program() {
  const auto self = ThisProgram();
  const auto folder = self.empty() ? std::filesystem::path("/") : self.parent_path();
  const auto beside = folder / "godwit-text";
  if (access(beside.c_str(), X_OK) == 0) return beside;
  return (folder / kTextProgram).lexically_normal();
}

WorkerProcess::WorkerProcess(int64_t memory_bytes) {
  int ends[2];
  if (!OpenSocketPair(ends)) ThrowStart(errno);
  socket_ = ends[0];
  const timeval wait = {.tv_sec = 0, .tv_usec = 50'000};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));

  SpawnSettings settings;
  posix_spawn_file_actions_adddup2(&settings.files, ends[1], STDIN_FILENO);
  for (const int file : {STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&settings.files, file, "/dev/null", O_WRONLY, 0);
  }
  ResetSignals(settings.attributes);
  const std::string program = Program();
  std::string name = "godwit-text", protocol = kWorkerProtocol,
              memory = std::to_string(memory_bytes);
  char* const arguments[] = {name.data(), protocol.data(), memory.data(), nullptr};
  const int error = posix_spawn(&pid_, program.c_str(), &settings.files, &settings.attributes,
                                arguments, environ);
  close(ends[1]);
  if (error != 0) {
    close(socket_);
    ThrowStart(error);
  }
}

WorkerProcess::~WorkerProcess() {
  close(socket_);
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  Wait();
}

int WorkerProcess::Wait() {
  int status = -1;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno == EINTR) continue;
    status = -1;
    break;
  }
  pid_ = -1;
  return status;
}

}  // namespace godwit
