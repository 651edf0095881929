// NewFolder: a folder that exists whole or not at all.
//
// It is filled under a temporary name beside the target and renamed by Commit; without Commit
// nothing remains. Folders left behind by a killed process have names that no reader takes for the
// target.
#pragma once

#include <filesystem>
#include <vector>

namespace godwit {

class NewFolder {
 public:
  // The temporary folder of this process, there or not.
  static std::filesystem::path TemporaryPath(const std::filesystem::path& target);

  // Makes the temporary folder. Throws Error(kInput) if the target exists, whatever it is, and
  // Error(kIo) if the system refuses.
  explicit NewFolder(const std::filesystem::path& target);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Where to put the files.
  const std::filesystem::path& path() const { return temporary_; }

  // Brings every file to the disk, then renames: after a power cut, too, there is all or nothing.
  // Throws Error(kIo).
  void Commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty once renamed
};

// Throws Error(kInput) if `target` exists, as NewFolder does, for callers with work to do before.
void RefuseExisting(const std::filesystem::path& target);

// The temporary folders of this target whose processes are gone, by name.
std::vector<std::filesystem::path> AbandonedFolders(const std::filesystem::path& target);

}  // namespace godwit
