#include "journal/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/own_folder.h"
#include "base/quote.h"

namespace godwit::journal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGoing = ".journal", kDone = ".done";
constexpr size_t kMaxName = 64;

struct Listed {
  std::string name;
  fs::path path;
  bool done;
  int64_t bytes;
  fs::file_time_type time;
};

// The journals of a folder, oldest first, without those that cannot be looked at.
std::vector<Listed> List(const fs::path& folder) {
  std::vector<Listed> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string extension = entry.path().extension();
    if (extension != kGoing && extension != kDone) continue;
    if (!IsOwnFile(entry.path())) continue;
    std::error_code gone;
    Listed file{.name = entry.path().stem(),
                .path = entry.path(),
                .done = extension == kDone,
                .bytes = static_cast<int64_t>(entry.file_size(gone)),
                .time = {}};
    if (!gone) file.time = entry.last_write_time(gone);
    if (!gone) files.push_back(std::move(file));
  }
  std::ranges::sort(files, {}, [](const Listed& file) { return std::pair(file.time, file.name); });
  return files;
}

FileDescriptor LockOf(const fs::path& folder) {
  FileDescriptor lock(
      open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.get() < 0) ThrowErrno(folder, "write into the folder");
  // A killed server's children hold the lock until they have begun with their own program, which
  // takes seconds on a crowded machine.
  constexpr int kTries = 300;
  constexpr std::chrono::milliseconds kBetween{10};
  int tries = 0;
  while (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (++tries < kTries) {
      std::this_thread::sleep_for(kBetween);
      continue;
    }
    Throw(ErrorKind::kInput, "{}: another server has this journal",
          QuoteUnlessPlain(folder.native()));
  }
  return lock;
}

const fs::path& MakeFolder(const fs::path& path) {
  MakeOwnFolder(path);
  struct stat status;
  if (stat(path.c_str(), &status) != 0) ThrowErrno(path, "look into the folder");
  if ((status.st_mode & 077) != 0) {
    Throw(ErrorKind::kInput,
          "{}: other users may open this folder, and a journal holds texts: expected mode 700",
          QuoteUnlessPlain(path.native()));
  }
  SyncNames(path);  // a file's name is not found without those of its folders
  return path;
}

}  // namespace

Folder::Folder(fs::path path, FolderLimits limits, Writer::Notice notice)
    : path_(std::move(path)),
      limits_(limits),
      notice_(std::move(notice)),
      lock_(LockOf(MakeFolder(path_))),
      writer_(notice_, [this](int64_t bytes) { return MakeRoom(bytes); }) {
  MakeRoom(0);
}

bool Folder::IsName(std::string_view name) {
  const auto is_letter = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= kMaxName && std::ranges::all_of(name, is_letter);
}

fs::path Folder::PathOf(const std::string& name, bool done) const {
  return path_ / (name + std::string(done ? kDone : kGoing));
}

std::shared_ptr<File> Folder::Begin(const std::string& name) {
  try {
    auto file = writer_.Begin(PathOf(name, false));
    const std::lock_guard lock(mutex_);
    open_[name] = file;
    return file;
  } catch (const Error& error) {
    if (notice_) notice_(error.what());
    return nullptr;
  }
}

// Waits a moment for the writer to let go of a file whose owner has.
bool Folder::IsOpen(const std::string& name) const {
  constexpr int kLooks = 100;
  constexpr std::chrono::milliseconds kBetween{2};
  for (int i = 0; i < kLooks; ++i) {
    {
      const std::lock_guard lock(mutex_);
      const auto open = open_.find(name);
      if (open == open_.end() || open->second.expired()) return false;
    }
    std::this_thread::sleep_for(kBetween);
  }
  return true;
}

std::shared_ptr<File> Folder::GoOn(const std::string& name, const Records& records) {
  try {
    if (IsOpen(name)) return nullptr;
    // An answer that goes on has no end.
    std::error_code ignored;
    fs::rename(PathOf(name, true), PathOf(name, false), ignored);
    auto file = writer_.GoOn(PathOf(name, false), records);
    const std::lock_guard lock(mutex_);
    open_[name] = file;
    return file;
  } catch (const Error& error) {
    if (notice_) notice_(error.what());
    return nullptr;
  }
}

void Folder::Finish(const std::string& name, File& file) const { file.Finish(PathOf(name, true)); }

std::optional<Records> Folder::Read(const std::string& name) const {
  for (const bool done : {false, true, false}) {  // it may be renamed meanwhile
    const fs::path path = PathOf(name, done);
    if (!IsName(name) || !IsOwnFile(path)) continue;
    try {
      return ReadRecords(path);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kFormat && notice_) notice_(error.what());
    }
  }
  return std::nullopt;
}

std::vector<std::string> Folder::Unfinished() const {
  std::vector<std::string> names;
  for (const Listed& file : List(path_)) {
    if (!file.done && IsName(file.name)) names.push_back(file.name);
  }
  return names;
}

bool Folder::Remove(const std::string& name) {
  if (!IsName(name)) return false;
  bool removed = false;
  for (const bool done : {false, true, false}) {
    std::error_code ignored;
    removed = fs::remove(PathOf(name, done), ignored) || removed;
  }
  try {
    if (removed) Sync(path_);
  } catch (const Error& error) {
    if (notice_) notice_(error.what());
  }
  return removed;
}

bool Folder::MakeRoom(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ += bytes;
  // Looking at all files takes a while, so that a hundredth of the limit passes in between.
  if (counted_at_bytes_ >= 0 && bytes > 0 && bytes_ - counted_at_bytes_ < limits_.bytes / 100) {
    return true;
  }
  std::erase_if(open_, [](const auto& one) { return one.second.expired(); });
  auto files = List(path_);
  int64_t all = bytes;
  for (const Listed& file : files) all += file.bytes;
  std::ranges::stable_sort(files, {}, [](const Listed& file) { return !file.done; });
  const std::chrono::duration<double> age(limits_.age_s);
  const auto oldest = fs::file_time_type::clock::now() -
                      std::chrono::duration_cast<fs::file_time_type::duration>(age);
  const auto remove = [&](const auto& may_go) {
    std::erase_if(files, [&](const Listed& file) {
      std::error_code ignored;
      if (open_.contains(file.name) || !may_go(file)) return false;
      if (fs::remove(file.path, ignored)) all -= file.bytes;
      return true;
    });
  };
  remove([&](const Listed& file) { return file.time < oldest; });
  remove([&](const Listed& /*file*/) { return all > limits_.bytes; });
  counted_at_bytes_ = bytes_;
  if (all > limits_.bytes) counted_at_bytes_ = -1;
  return all <= limits_.bytes;
}

}  // namespace godwit::journal
