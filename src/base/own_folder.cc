#include "base/own_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/quote.h"

namespace godwit {

namespace fs = std::filesystem;

void MakeOwnFolder(const fs::path& path) {
  std::error_code ignored;  // the checks below report errors
  fs::create_directories(fs::absolute(path / "").parent_path().parent_path(), ignored);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) ThrowErrno(path, "make the folder");
  struct stat status;
  if (stat(path.c_str(), &status) != 0) ThrowErrno(path, "look into the folder");
  const std::string name = QuoteUnlessPlain(path.native());
  if (!S_ISDIR(status.st_mode)) Throw(ErrorKind::kInput, "{}: expected a folder", name);
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    Throw(ErrorKind::kInput, "{}: the folder belongs to another user", name);
  }
}

bool IsOwnFile(const fs::path& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

FolderLock::FolderLock(const fs::path& folder)
    : file_(open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (file_.get() < 0) ThrowErrno(folder, "write into the folder");
  while (flock(file_.get(), LOCK_EX) != 0 && errno == EINTR) continue;
}

}  // namespace godwit
