#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/quote.h"

namespace godwit {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int fd() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void ThrowErrno(const std::string& name, const char* action) {
  Throw(ErrorKind::kIo, "{}: cannot {}: {}", name, action, std::strerror(errno));
}

}  // namespace

std::string ReadTextFile(const std::filesystem::path& path, size_t max_bytes) {
  const std::string name = Quote(path.native());
  // O_NONBLOCK: opening a pipe that nobody writes to must not hang.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) ThrowErrno(name, "open");
  struct stat info;
  if (fstat(file.fd(), &info) != 0) ThrowErrno(name, "examine");
  if (S_ISDIR(info.st_mode)) Throw(ErrorKind::kIo, "{}: expected a file, found a directory", name);
  if (!S_ISREG(info.st_mode)) Throw(ErrorKind::kIo, "{}: not a regular file", name);
  const auto size = static_cast<size_t>(info.st_size);
  if (size > max_bytes) {
    Throw(ErrorKind::kFormat, "{}: {} bytes, expected at most {}", name, size, max_bytes);
  }

  std::string text(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read(file.fd(), text.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowErrno(name, "read");
    if (got == 0) break;  // truncated while we read it
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

}  // namespace godwit
