#include "base/system/file_space.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace godwit {

#ifdef __linux__

int TakeFileSpace(int file, int64_t begin, int64_t bytes) noexcept {
  int error;
  do {
    error = posix_fallocate(file, begin, bytes);
  } while (error == EINTR);
  return error;
}
void GiveFileSpace(int file, int64_t begin, int64_t bytes) noexcept {
  fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, bytes);
}
void SyncData(int file) noexcept { fdatasync(file); }

#else

int TakeFileSpace(int file, int64_t begin, int64_t bytes) noexcept {
  struct stat status;
  if (fstat(file, &status) != 0) return errno;
  if (status.st_size >= begin + bytes) return 0;
#ifdef F_PREALLOCATE
  fstore_t space = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, begin + bytes - status.st_size, 0};
  if (fcntl(file, F_PREALLOCATE, &space) != 0) return errno;
#endif
  return ftruncate(file, begin + bytes) == 0 ? 0 : errno;
}
void GiveFileSpace(int /*file*/, int64_t /*begin*/, int64_t /*bytes*/) noexcept {}
void SyncData(int file) noexcept { fsync(file); }

#endif

}  // namespace godwit
