#include "cli/terminal/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "cli/terminal/output.h"

namespace godwit::cli {
namespace {

[[noreturn]] void Refuse(const std::string& path, int error) {
  Throw(ErrorKind::kIo, "cannot write {}: {}", path, std::generic_category().message(error));
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  if (path == "-") {
    file_ = STDOUT_FILENO;
    path_ = "standard output";
    return;
  }
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored)) {
    // Renaming over a link would leave the file that it points to as it was.
    const auto target = std::filesystem::canonical(path, ignored);
    if (!target.empty()) path_ = target;
  }
  if (std::filesystem::is_directory(path_, ignored)) Refuse(path, EISDIR);
  if (std::filesystem::exists(path_, ignored) &&
      !std::filesystem::is_regular_file(path_, ignored)) {
    file_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    temporary_ = fmt::format("{}.{}.tmp", path_, getpid());
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  }
  if (file_ < 0) Refuse(path, errno);
}

OutputFile::~OutputFile() {
  if (file_ > STDERR_FILENO) close(file_);
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void OutputFile::Write(std::span<const std::byte> bytes) { WriteAll(file_, bytes, path_); }

void OutputFile::Commit() {
  Close();
  const std::string temporary = std::exchange(temporary_, "");
  if (temporary.empty() || std::rename(temporary.c_str(), path_.c_str()) == 0) return;
  const int error = errno;
  std::remove(temporary.c_str());
  Refuse(path_, error);
}

// Some file systems report a full disk only here.
void OutputFile::Close() {
  if (file_ == STDOUT_FILENO) return;
  if (close(std::exchange(file_, -1)) != 0) Refuse(path_, errno);
}

void CheckOutputFile(std::string_view flag, const std::optional<std::string>& path) {
  if (!path) return;
  if (*path == "-") {
    Throw(ErrorKind::kInput, "{}: expected a file, since the result goes to standard output", flag);
  }
  const OutputFile probe(*path);
}

void WriteFile(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.Write(std::as_bytes(std::span(text)));
  file.Commit();
}

}  // namespace godwit::cli
