#include "base/system/descriptors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace godwit {

#ifdef __linux__

bool OpenPipe(int* ends, bool blocks) noexcept {
  return pipe2(ends, blocks ? O_CLOEXEC : O_NONBLOCK | O_CLOEXEC) == 0;
}
bool OpenSocketPair(int* ends) noexcept {
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0;
}
long SendQuietly(int socket, const void* bytes, unsigned long count) noexcept {
  return send(socket, bytes, count, MSG_NOSIGNAL);
}
int OpenUnnamedFile(const std::string& purpose) noexcept {
  return memfd_create(purpose.c_str(), MFD_CLOEXEC);
}

#else

namespace {

// Between the call that opened them and this one, another thread might start a program.
void KeepFromPrograms(const int* ends) noexcept {
  for (int i = 0; i < 2; ++i) fcntl(ends[i], F_SETFD, FD_CLOEXEC);
}

}  // namespace

bool OpenPipe(int* ends, bool blocks) noexcept {
  if (pipe(ends) != 0) return false;
  KeepFromPrograms(ends);
  for (int i = 0; i < 2 && !blocks; ++i) fcntl(ends[i], F_SETFL, O_NONBLOCK);
  return true;
}
bool OpenSocketPair(int* ends) noexcept {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return false;
  KeepFromPrograms(ends);
#ifdef SO_NOSIGPIPE
  const int quiet = 1;
  for (int i = 0; i < 2; ++i) setsockopt(ends[i], SOL_SOCKET, SO_NOSIGPIPE, &quiet, sizeof(quiet));
#endif
  return true;
}
long SendQuietly(int socket, const void* bytes, unsigned long count) noexcept {
  return send(socket, bytes, count, 0);
}
int OpenUnnamedFile(const std::string& /*purpose*/) noexcept {
  char name[] = "/tmp/godwit-XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) return file;
  unlink(name);
  fcntl(file, F_SETFD, FD_CLOEXEC);
  return file;
}

#endif

}  // namespace godwit
