// A folder of this user's, which his processes share.
#pragma once

#include <filesystem>

#include "base/open_file.h"

namespace godwit {

// Makes the folder, for this user alone, and those above it if they do not exist. Throws
// Error(kIo), and Error(kInput) for a folder of another user: that user could read what we write
// and write what we read.
void MakeOwnFolder(const std::filesystem::path& path);

// Whether it is a regular file of this user's, and no link.
bool IsOwnFile(const std::filesystem::path& path);

// Held by one process at a time, for as long as it lives; others wait. Where the system has no
// locks it keeps nobody out.
class FolderLock {
 public:
  // Throws Error(kIo) where nothing can be written into the folder.
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  FileDescriptor file_;  // closing it unlocks
};

}  // namespace godwit
