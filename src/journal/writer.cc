#include "journal/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/next_poll.h"
#include "base/stopwatch.h"

namespace godwit::journal {
namespace {

constexpr std::chrono::milliseconds kWriteEvery{20};
constexpr std::chrono::milliseconds kSyncEvery{1000};

// Writes all bytes at an offset. Zero, or the error number.
int WriteAt(int fd, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t done = pwrite(fd, bytes.data(), bytes.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(done));
    offset += done;
  }
  return 0;
}

}  // namespace

File::File(Writer& writer, std::filesystem::path path, FileDescriptor descriptor, int64_t bytes,
           int64_t records)
    : writer_(writer),
      descriptor_(std::move(descriptor)),
      path_(std::move(path)),
      written_(bytes),
      records_(records),
      on_disk_at_(std::chrono::system_clock::now()) {
  if (bytes == 0) pending_ = FileHeader();
}

void File::List() {
  is_on_disk_ = false;
  ++changes_;
  if (!std::exchange(is_listed_, true)) writer_.files_.push_back(shared_from_this());
  writer_.changed_.notify_all();
}

void File::Append(uint32_t kind, std::string_view bytes) {
  const std::lock_guard lock(writer_.mutex_);
  if (failed_ || std::ssize(bytes) > kMaxRecordBytes) return;
  pending_ += RecordBytes(records_++, kind, bytes);
  List();
}

void File::Finish(std::filesystem::path done) {
  const std::lock_guard lock(writer_.mutex_);
  if (failed_) return;
  done_ = std::move(done);
  List();
}

bool File::WaitForDisk(double wait_ms) {
  const Stopwatch waited;
  std::unique_lock lock(writer_.mutex_);
  while (!is_on_disk_ && !failed_ && waited.ms() < wait_ms) {
    is_urgent_ = true;
    writer_.changed_.notify_all();
    writer_.changed_.wait_until(lock, NextPoll(wait_ms - waited.ms()));
  }
  return is_on_disk_ && !failed_;
}

int64_t File::bytes() const {
  const std::lock_guard lock(writer_.mutex_);
  return written_ + std::ssize(pending_);
}

Writer::Writer(Notice notice, Room room)
    : notice_(std::move(notice)), room_(std::move(room)), thread_([this] { Loop(); }) {}

Writer::~Writer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<File> Writer::Begin(const std::filesystem::path& path) {
  FileDescriptor descriptor(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (descriptor.get() < 0) ThrowErrno(path, "make the file");
  return Add(std::make_shared<File>(*this, path, std::move(descriptor), 0, 0));
}

std::shared_ptr<File> Writer::GoOn(const std::filesystem::path& path, const Records& records) {
  FileDescriptor descriptor(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (descriptor.get() < 0) ThrowErrno(path, "open");
  if (ftruncate(descriptor.get(), records.bytes) != 0) ThrowErrno(path, "cut off the file's tail");
  // A power cut could leave old records of the tail behind new ones.
  if (records.has_tail) Sync(descriptor, path);
  return Add(std::make_shared<File>(*this, path, std::move(descriptor), records.bytes,
                                    std::ssize(records.records)));
}

std::shared_ptr<File> Writer::Add(std::shared_ptr<File> file) {
  const std::lock_guard lock(mutex_);
  file->List();
  return file;
}

void Writer::Loop() {
  std::unique_lock lock(mutex_);
  Time written_at;
  while (true) {
    const auto is_pending = [](const auto& file) { return !file->is_on_disk_ && !file->failed_; };
    const auto is_urgent = [&](const auto& file) { return file->is_urgent_ && is_pending(file); };
    const auto any = [&](const auto& is) { return std::ranges::any_of(files_, is); };
    changed_.wait(lock, [&] { return stop_ || any(is_pending); });
    const Time next = written_at + kWriteEvery;
    changed_.wait_until(lock, next, [&] { return stop_ || any(is_urgent); });
    written_at = std::chrono::system_clock::now();
    const auto files = files_;
    for (const auto& file : files) {
      if (!is_pending(file)) continue;
      if (!file->pending_.empty()) WriteOut(*file, lock);
      const bool is_time = written_at - file->on_disk_at_ >= kSyncEvery;
      if (is_pending(file) && (stop_ || is_time || file->is_urgent_ || !file->done_.empty())) {
        BringToDisk(*file, lock);
      }
    }
    std::erase_if(files_, [&](const auto& file) {
      if (is_pending(file)) return false;
      file->is_listed_ = false;
      return true;
    });
    if (stop_ && !any(is_pending)) return;
  }
}

void Writer::WriteOut(File& file, std::unique_lock<std::mutex>& lock) {
  const std::string bytes = std::exchange(file.pending_, {});
  const int64_t offset = file.written_;
  lock.unlock();
  const bool has_room = !room_ || room_(std::ssize(bytes));
  const int error = has_room ? WriteAt(file.descriptor_.get(), bytes, offset) : 0;
  // A torn record is cut off while there is a chance; a reader would stop before it anyway.
  if (error != 0 && ftruncate(file.descriptor_.get(), offset) != 0) errno = 0;
  lock.lock();
  file.written_ += has_room && error == 0 ? std::ssize(bytes) : 0;
  if (!has_room) return Fail(file, "the journal has no room left");
  if (error != 0) Fail(file, std::generic_category().message(error));
}

void Writer::BringToDisk(File& file, std::unique_lock<std::mutex>& lock) {
  const std::filesystem::path path = file.path_, done = file.done_;
  const bool has_name = std::exchange(file.has_name_on_disk_, true);
  const int64_t changes = file.changes_;
  file.is_urgent_ = false;
  lock.unlock();
  std::string failure;
  try {
    Sync(file.descriptor_, path);
    if (!has_name) Sync(path.parent_path().empty() ? "." : path.parent_path());
    if (!done.empty()) {
      std::error_code ignored;  // somebody may have removed it
      std::filesystem::rename(path, done, ignored);
    }
  } catch (const Error& error) {
    failure = error.what();
  }
  lock.lock();
  file.on_disk_at_ = std::chrono::system_clock::now();
  if (!done.empty()) {
    file.path_ = done;
    file.done_.clear();
  }
  if (file.changes_ == changes) file.is_on_disk_ = true;
  if (!failure.empty()) Fail(file, failure);
  changed_.notify_all();
}

void Writer::Fail(File& file, const std::string& why) {
  file.failed_ = true;
  file.pending_.clear();
  changed_.notify_all();
  if (std::exchange(said_, true) || !notice_) return;
  notice_(fmt::format("answers in progress can no longer be written down: {}", why));
}

}  // namespace godwit::journal
