#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace godwit::hub {
namespace {

namespace fs = std::filesystem;

// The user's mask applies to new files, because others may share the cache.
constexpr mode_t kMode = 0666;

int Open(const fs::path& path) {
  int file;
  do {
    file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode);
  } while (file < 0 && errno == EINTR);
  return file;
}

}  // namespace

PartialFile::PartialFile(fs::path path, bool hashed, const CancelToken* cancel)
    : path_(std::move(path)), hashed_(hashed), file_(Open(path_)) {
  if (file_.get() < 0) ThrowErrno(path_, "write");
  struct stat status;
  if (fstat(file_.get(), &status) != 0) ThrowErrno(path_, "look at");
  size_ = status.st_size;
  if (hashed_) HashExistingBytes(cancel);
}

void PartialFile::HashExistingBytes(const CancelToken* cancel) {
  std::vector<std::byte> bytes(size_t{1} << 20);
  for (int64_t at = 0; at < size_;) {
    if (cancel != nullptr) cancel->ThrowIfCancelled();
    const ssize_t count = pread(file_.get(), bytes.data(), bytes.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowErrno(path_, "read");
    if (count == 0) return Restart();  // another program cut the file
    hash_.Add(std::span(bytes).first(count));
    at += count;
  }
}

void PartialFile::Restart() {
  if (ftruncate(file_.get(), 0) != 0) ThrowErrno(path_, "write");
  size_ = 0;
  hash_ = Sha256();
}

void PartialFile::Append(std::string_view text) {
  for (auto left = std::as_bytes(std::span(text)); !left.empty();) {
    const ssize_t count = pwrite(file_.get(), left.data(), left.size(), size_);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = EIO;
    if (count <= 0) ThrowErrno(path_, "write");
    const auto written = left.first(count);
    if (hashed_) hash_.Add(written);
    size_ += count;
    left = left.subspan(written.size());
  }
}

void PartialFile::Finish(const fs::path& target) {
  Sync(file_, path_);
  if (std::rename(path_.c_str(), target.c_str()) != 0) ThrowErrno(target, "write");
  Sync(target.parent_path());
}

void PartialFile::Remove() { unlink(path_.c_str()); }

BlobLock::BlobLock(const fs::path& path, const std::function<void()>& on_wait,
                   const CancelToken* cancel)
    : file_(Open(path)) {
  if (file_.get() < 0) ThrowErrno(path, "write");
  for (bool waits = false; flock(file_.get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return;  // a system without locks keeps nobody out
    if (!std::exchange(waits, true)) on_wait();
    if (cancel != nullptr) cancel->ThrowIfCancelled();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace godwit::hub
