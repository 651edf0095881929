#include "console/terminal/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "console/terminal/output.h"

namespace godwit::console {
namespace {

namespace fs = std::filesystem;

// The process's own descriptor that the path names. Opening such a name would give the file, but
// not the place in it that the process has reached.
std::optional<int> OwnDescriptor(std::string_view path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const auto [end, error] =
        std::from_chars(path.data() + folder.size(), path.data() + path.size(), number);
    if (error == std::errc() && end == path.data() + path.size()) return number;
  }
  return std::nullopt;
}

bool IsDeviceOrPipe(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

OutputFile::OutputFile(const std::string& path, mode_t mode)
    : name_(path == "-" ? "standard output" : QuoteUnlessPlain(path)) {
  if (const auto descriptor = OwnDescriptor(path)) {
    file_ = fcntl(*descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  } else if (IsDeviceOrPipe(path)) {
    file_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    OpenTemporary(path, mode);
  }
  if (file_ < 0) Refuse(errno);
}

void OutputFile::OpenTemporary(const fs::path& path, mode_t mode) {
  target_ = FollowLinks(path);
  struct stat before;
  const bool existed = stat(target_.c_str(), &before) == 0;
  if (!existed && errno != ENOENT) Refuse(errno);
  if (existed && S_ISDIR(before.st_mode)) Refuse(EISDIR);
  if (existed && access(target_.c_str(), W_OK) != 0) Refuse(errno);
  const std::string temporary = fmt::format("{}.{}.tmp", target_.native(), getpid());
  removed_.emplace(temporary);
  file_ = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (file_ < 0) return;
  temporary_ = temporary;
  if (!existed) return;
  (void)!fchown(file_, before.st_uid, before.st_gid);  // may need privileges
  (void)fchmod(file_, before.st_mode & 07777);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void OutputFile::Write(std::span<const std::byte> bytes) { WriteAll(file_, bytes, name_); }

void OutputFile::Commit() {
  if (!temporary_.empty() && fsync(file_) != 0) Refuse(errno);
  Close();
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) Refuse(errno);
  temporary_.clear();
}

// Some file systems report a full disk only at this call.
void OutputFile::Close() {
  if (close(std::exchange(file_, -1)) != 0) Refuse(errno);
}

void OutputFile::Refuse(int error) const {
  Throw(ErrorKind::kIo, "cannot write {}: {}", name_, std::generic_category().message(error));
}

void OutputFile::CheckWritable(const std::string& path) {
  if (!IsOwnDescriptor(path) && IsDeviceOrPipe(path) && access(path.c_str(), W_OK) == 0) return;
  const OutputFile probe(path);
}

bool IsOwnDescriptor(std::string_view path) { return OwnDescriptor(path).has_value(); }

fs::path FollowLinks(fs::path path) {
  constexpr int kMaxLinks = 40;  // Linux's limit
  std::error_code error;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(path, error); ++i) {
    const fs::path link = fs::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / link;
  }
  return path;
}

void WriteFile(const std::string& path, std::string_view text, mode_t mode) {
  OutputFile file(path, mode);
  file.Write(std::as_bytes(std::span(text)));
  file.Commit();
}

}  // namespace godwit::console
