#include "tests/faults/faults.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

namespace godwit::faults {
namespace {

std::mutex mutex;
int calls_left = -1;  // before the failing one; negative: none fails
bool fails_for_good = false;
Kind fault = Kind::kError;
int fault_error = 0;
std::string first_failed;

bool FailsNow(const char* name) {
  const std::lock_guard lock(mutex);
  if (calls_left < 0 || calls_left-- > 0) return false;
  if (fails_for_good) calls_left = 0;
  if (first_failed.empty()) first_failed = name;
  errno = fault_error;
  return true;
}

bool Fails(const char* name) { return FailsNow(name) && fault == Kind::kError; }

}  // namespace

void FailCall(int n, Kind kind, int error, bool for_good) {
  const std::lock_guard lock(mutex);
  calls_left = n;
  fails_for_good = for_good;
  fault = kind;
  fault_error = error;
  first_failed.clear();
}

std::string StopFailing() {
  const std::lock_guard lock(mutex);
  calls_left = -1;
  return first_failed;
}

}  // namespace godwit::faults

// The real functions, below the C library's.
extern "C" {

using godwit::faults::Fails;

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (Fails("open")) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t write(int file, const void* data, size_t bytes) {
  if (godwit::faults::FailsNow("write")) {
    if (godwit::faults::fault == godwit::faults::Kind::kError) return -1;
    bytes = std::max<size_t>(1, bytes / 3);
  }
  return syscall(SYS_write, file, data, bytes);
}

int fsync(int file) { return Fails("fsync") ? -1 : static_cast<int>(syscall(SYS_fsync, file)); }

int rename(const char* from, const char* to) noexcept {
  return Fails("rename") ? -1 : static_cast<int>(syscall(SYS_rename, from, to));
}

int flock(int file, int operation) noexcept {
  return Fails("flock") ? -1 : static_cast<int>(syscall(SYS_flock, file, operation));
}

int unlink(const char* path) noexcept {
  return Fails("unlink") ? -1 : static_cast<int>(syscall(SYS_unlink, path));
}

int utimensat(int folder, const char* path, const struct timespec times[2], int flags) noexcept {
  if (Fails("utimensat")) return -1;
  return static_cast<int>(syscall(SYS_utimensat, folder, path, times, flags));
}

void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (file >= 0 && Fails("mmap")) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}

int mkdir(const char* path, mode_t mode) noexcept {
  return Fails("mkdir") ? -1 : static_cast<int>(syscall(SYS_mkdir, path, mode));
}

int fstat(int file, struct stat* status) noexcept {
  return Fails("fstat") ? -1 : static_cast<int>(syscall(SYS_fstat, file, status));
}

int lstat(const char* path, struct stat* status) noexcept {
  return Fails("lstat") ? -1 : static_cast<int>(syscall(SYS_lstat, path, status));
}

}  // extern "C"
