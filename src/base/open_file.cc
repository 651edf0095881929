#include "base/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/quote.h"

namespace godwit {

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

void ThrowErrno(const std::filesystem::path& path, const char* action) {
  const int error = errno;
  Throw(ErrorKind::kIo, "{}: cannot {}: {}", QuoteUnlessPlain(path.native()), action,
        std::generic_category().message(error));
}

void Sync(const FileDescriptor& descriptor, const std::filesystem::path& path) {
  int failed;
  do {
    failed = fsync(descriptor.get());
  } while (failed != 0 && errno == EINTR);
  if (failed != 0) ThrowErrno(path, "write to the disk");
}

void Sync(const std::filesystem::path& path) {
  const FileDescriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.get() < 0) ThrowErrno(path, "open");
  Sync(descriptor, path);
}

void SyncNames(const std::filesystem::path& path) noexcept {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(path / "", error).parent_path();
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    const FileDescriptor descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (descriptor.get() >= 0) fsync(descriptor.get());
  }
}

OpenedFile OpenRegularFile(const std::filesystem::path& path) {
  // O_NONBLOCK: without it, opening a named pipe without a writer would hang.
  FileDescriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) ThrowErrno(path, "open");
  struct stat status;
  if (fstat(descriptor.get(), &status) != 0) ThrowErrno(path, "read its size");
  if (S_ISDIR(status.st_mode)) {
    Throw(ErrorKind::kIo, "{}: expected a file, found a folder", QuoteUnlessPlain(path.native()));
  }
  if (!S_ISREG(status.st_mode)) {
    Throw(ErrorKind::kIo, "{}: expected a regular file, found a device, pipe or socket",
          QuoteUnlessPlain(path.native()));
  }
  return {std::move(descriptor), static_cast<uint64_t>(status.st_size)};
}

}  // namespace godwit
