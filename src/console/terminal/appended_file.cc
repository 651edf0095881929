#include "console/terminal/appended_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "console/terminal/output.h"
#include "console/terminal/output_file.h"

namespace godwit::console {
namespace {

bool Exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

FileDescriptor OpenLocked(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (file.get() < 0) ThrowErrno(path, "write");
  const bool locked = flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno != EWOULDBLOCK) ThrowErrno(path, "lock");
  struct stat opened, named;
  const bool is_it = fstat(file.get(), &opened) == 0 && stat(path.c_str(), &named) == 0 &&
                     opened.st_ino == named.st_ino;  // false if it was replaced meanwhile
  if (!locked || !is_it) {
    Throw(ErrorKind::kInput, "{}: another process is writing to it", QuoteUnlessPlain(path));
  }
  return file;
}

}  // namespace

void AppendedFile::CheckWritable(const std::string& path) {
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (IsOwnDescriptor(path) || (exists && !S_ISREG(status.st_mode))) {
    Throw(ErrorKind::kInput, "{}: expected a regular file, which a later run can continue",
          QuoteUnlessPlain(path));
  }
  if (!exists) return OutputFile::CheckWritable(path);
  if (access(path.c_str(), W_OK) != 0) ThrowErrno(path, "write");
}

AppendedFile::AppendedFile(const std::string& path)
    : path_((CheckWritable(path), path)), existed_(Exists(path)), file_(OpenLocked(path)) {}

AppendedFile::~AppendedFile() {
  struct stat status;
  if (existed_ || fstat(file_.get(), &status) != 0 || status.st_size > 0) return;
  unlink(path_.c_str());
}

void AppendedFile::Append(std::string_view text) {
  WriteAll(file_.get(), std::as_bytes(std::span(text)), QuoteUnlessPlain(path_));
}

void AppendedFile::Sync() {
  godwit::Sync(file_, path_);
  if (!std::exchange(has_name_on_disk_, true)) SyncNames(path_);
}

void AppendedFile::Reopen() {
  file_ = OpenLocked(path_);
  has_name_on_disk_ = false;
}

void AppendedFile::Truncate(int64_t bytes) {
  if (ftruncate(file_.get(), bytes) != 0) ThrowErrno(path_, "shorten");
}

}  // namespace godwit::console
