#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace godwit {
namespace {

[[noreturn]] void ThrowSystem(const std::string& path, const char* action, int error) {
  Throw(ErrorKind::kIo, "{}: cannot {}: {}", path, action, std::generic_category().message(error));
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path.string()) {
  // O_NONBLOCK: opening a named pipe without a writer would hang.
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) ThrowSystem(path_, "open", errno);
  struct stat status;
  if (fstat(fd.get(), &status) != 0) ThrowSystem(path_, "read its size", errno);
  if (S_ISDIR(status.st_mode)) {
    Throw(ErrorKind::kIo, "{}: expected a file, found a folder", path_);
  }
  if (!S_ISREG(status.st_mode)) {
    Throw(ErrorKind::kIo, "{}: expected a regular file, found a device, pipe or socket", path_);
  }
  if (status.st_size <= 0) Throw(ErrorKind::kIo, "{}: the file is empty", path_);
  if (static_cast<uint64_t>(status.st_size) > std::numeric_limits<size_t>::max()) {
    Throw(ErrorKind::kIo, "{}: {} bytes exceed the address space", path_, status.st_size);
  }
  const auto size_bytes = static_cast<size_t>(status.st_size);
  void* data = mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) ThrowSystem(path_, "map", errno);
  data_ = static_cast<const std::byte*>(data);
  size_bytes_ = size_bytes;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_bytes_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

void MappedFile::Advise(size_t offset, size_t size_bytes, Advice advice) const noexcept {
  if (offset >= size_bytes_ || size_bytes == 0) return;
  // Widened also for kDontNeed: a neighbour's page comes back with one fault, whereas pages left at
  // both ends of thousands of small tensors would add up.
  static const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page_bytes * page_bytes;
  const size_t end = offset + std::min(size_bytes, size_bytes_ - offset);
  int hint = MADV_WILLNEED;
  if (advice == Advice::kDontNeed) hint = MADV_DONTNEED;
  if (advice == Advice::kSequential) hint = MADV_SEQUENTIAL;
  // The range stays inside the mapping: the kernel rounds its end up to the page the mapping has.
  madvise(const_cast<std::byte*>(data_) + begin, end - begin, hint);
}

}  // namespace godwit
