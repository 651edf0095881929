#include "base/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "base/system/advice.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

constexpr size_t kGathered = size_t{1} << 20;

fs::path TemporaryFor(const fs::path& target) {
  static std::atomic<int> count = 0;
  return target.native() + "." + std::to_string(getpid()) + "-" + std::to_string(count++) +
         NewFile::kSuffix;
}

// Creates and locks a file. An existing file of this name belongs to a process that once had our
// number, or has it in another container.
FileDescriptor Create(const fs::path& path) {
  for (;;) {
    FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0 && errno == EINTR) continue;
    if (file.get() < 0) return file;
    while (flock(file.get(), LOCK_EX) != 0 && errno == EINTR) continue;
    // Another process may have removed the file as abandoned before it was locked.
    struct stat status;
    if (fstat(file.get(), &status) != 0 || status.st_nlink > 0) return file;
  }
}

}  // namespace

NewFile::NewFile(const fs::path& target)
    : target_(target), temporary_(TemporaryFor(target)), file_(Create(temporary_)) {
  if (file_.get() < 0) {
    temporary_.clear();
    ThrowErrno(target, "write");
  }
}

NewFile::~NewFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void NewFile::Write(std::span<const std::byte> bytes) {
  size_ += std::ssize(bytes);
  if (gathered_.size() + bytes.size() > kGathered) Flush();
  if (bytes.size() >= kGathered) return WriteOut(bytes);
  gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
}

void NewFile::PadTo(int64_t bytes) {
  const std::vector<std::byte> zeros((bytes - size_ % bytes) % bytes);
  Write(zeros);
}

void NewFile::Flush() {
  WriteOut(gathered_);
  gathered_.clear();
}

void NewFile::WriteOut(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;
    if (written <= 0) ThrowErrno(target_, "write");
    bytes = bytes.subspan(written);
  }
}

void NewFile::CopyPermissions(const fs::path& other) {
  struct stat status;
  if (stat(other.c_str(), &status) != 0) ThrowErrno(other, "look at");
  constexpr mode_t kReaders = S_IRUSR | S_IRGRP | S_IROTH;
  if (fchmod(file_.get(), (status.st_mode & kReaders) | S_IRUSR | S_IWUSR) != 0) {
    ThrowErrno(target_, "share");
  }
}

void NewFile::Sync() {
  Flush();
  godwit::Sync(file_, target_);
  synced_ = true;
}

void NewFile::Commit() {
  if (!synced_ || !gathered_.empty()) Sync();
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) ThrowErrno(target_, "write");
  temporary_.clear();
  godwit::Sync(fs::absolute(target_).parent_path());  // absolute, for a bare name, too
}

void NewFile::DropFromPageCache() noexcept { DropFromCache(file_.get(), 0, 0); }

void RemoveAbandoned(const fs::path& folder, std::string_view names) noexcept {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(names) || !name.ends_with(NewFile::kSuffix)) continue;
    const FileDescriptor file(
        open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() < 0 || flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    unlink(entry->path().c_str());
  }
}

}  // namespace godwit
