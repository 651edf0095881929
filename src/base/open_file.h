// A regular file, opened for reading: what ReadTextFile and MappedFile begin with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

namespace godwit {

// Owns a descriptor and closes it. Move-only.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const { return fd_; }

 private:
  int fd_;  // negative: none
};

struct OpenedFile {
  FileDescriptor descriptor;
  uint64_t size_bytes;  // when it was opened; another process may change it
};

// Throws Error(kIo) that names `path` where it is missing, unreadable, a folder or anything else
// that is not a regular file.
OpenedFile OpenRegularFile(const std::filesystem::path& path);

// Brings to the disk what was written into a file, or the names of a folder's files. `path` is for
// messages. Throws Error(kIo).
void Sync(const FileDescriptor& descriptor, const std::filesystem::path& path);
void Sync(const std::filesystem::path& path);
// Brings the names of a file and of all folders above it to the disk. A folder that cannot be
// opened, or has no disk, is passed over: it was hardly made by this process.
void SyncNames(const std::filesystem::path& path) noexcept;

// Throws Error(kIo): "path: cannot <action>: " and what errno stands for.
[[noreturn]] void ThrowErrno(const std::filesystem::path& path, const char* action);

}  // namespace godwit
