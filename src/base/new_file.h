// NewFile: a file that exists whole or not at all, made among others that come and go.
//
// It is written under a temporary name beside the target, brought to the disk and renamed by
// Commit; without Commit nothing remains. Files left behind by a killed process are found by their
// locks, which ended with it (RemoveAbandoned). Only this user may read it, unless it is shared.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/open_file.h"

namespace godwit {

class NewFile {
 public:
  // The ending of temporary names, which no target's name has.
  static constexpr const char* kSuffix = ".part";

  // Throws Error(kIo), as the others do.
  explicit NewFile(const std::filesystem::path& target);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // At the end of what was written. Gathered: a call of the system for each MiB or so.
  void Write(std::span<const std::byte> bytes);
  // Zeros, up to a multiple of `bytes`.
  void PadTo(int64_t bytes);
  int64_t size() const { return size_; }

  // Gives the file the read permissions of `other`.
  void CopyPermissions(const std::filesystem::path& other);

  // Brings it to the disk; before Commit, which then takes a moment.
  void Sync();
  // After a power cut, too, there is all or nothing. Takes the place of a file of that name.
  void Commit();

  // Takes the file out of the system's cache, once it is on the disk. A later mapping
  // (MappedFile::Advice) then gets large pages, and not those in which it was written. Best effort.
  void DropFromPageCache() noexcept;

 private:
  void Flush();
  void WriteOut(std::span<const std::byte> bytes);

  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty once renamed
  FileDescriptor file_;
  std::vector<std::byte> gathered_;
  int64_t size_ = 0;
  bool synced_ = false;
};

// Removes the temporary files of a folder whose processes are gone, of targets whose names begin
// so. Best effort: what cannot be looked at stays.
void RemoveAbandoned(const std::filesystem::path& folder, std::string_view names = "") noexcept;

}  // namespace godwit
