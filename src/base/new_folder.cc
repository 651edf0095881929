#include "base/new_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/open_file.h"
#include "base/quote.h"

namespace godwit {
namespace {

namespace fs = std::filesystem;

// The absolute path, in which "folder/" is "folder".
fs::path Normal(const fs::path& path) { return fs::absolute(path / "").parent_path(); }

std::string TemporaryPrefix(const fs::path& target) { return target.filename().native() + ".tmp-"; }

}  // namespace

void RefuseExisting(const fs::path& target) {
  if (!IsListed(Normal(target))) return;
  Throw(ErrorKind::kInput, "{}: exists already, expected the name of a new folder",
        QuoteUnlessPlain(target.native()));
}

fs::path NewFolder::TemporaryPath(const fs::path& target) {
  const fs::path normal = Normal(target);
  return normal.parent_path() / (TemporaryPrefix(normal) + std::to_string(getpid()));
}

NewFolder::NewFolder(const fs::path& target)
    : target_(Normal(target)), temporary_(TemporaryPath(target)) {
  RefuseExisting(target);
  // A folder that is there belongs to a process that once had our number.
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  if (mkdir(temporary_.c_str(), 0777) != 0) ThrowErrno(target, "make the folder");
}

NewFolder::~NewFolder() {
  if (temporary_.empty()) return;
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

void NewFolder::Commit() {
  for (const auto& entry : fs::recursive_directory_iterator(temporary_)) Sync(entry.path());
  Sync(temporary_);
  RefuseExisting(target_);  // rename would replace an empty folder
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) ThrowErrno(target_, "make the folder");
  temporary_.clear();
  Sync(target_.parent_path());
}

std::vector<fs::path> AbandonedFolders(const fs::path& target) {
  const fs::path normal = Normal(target);
  const std::string prefix = TemporaryPrefix(normal);
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(normal.parent_path(), error)) {
    const std::string name = entry.path().filename().native();
    if (!name.starts_with(prefix)) continue;
    pid_t process = 0;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + prefix.size(), end, process);
    if (parsed.ec != std::errc() || parsed.ptr != end || process <= 0) continue;
    if (kill(process, 0) != 0 && errno == ESRCH) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace godwit
