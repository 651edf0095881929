// OutputFile: a file that is there whole or not at all.
//
// Commit syncs the file, which was written under a temporary name in the same folder, to the disk
// and renames it. Without Commit nothing remains, even if a signal ends the process. Links are
// followed, and an existing file keeps its owner and permissions. Anything but a regular file
// (/dev/full, a named pipe), and a descriptor of this process (/dev/stdout, /dev/fd/3), is written
// directly; "-" is standard output.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "console/terminal/clean_up.h"

namespace godwit::console {

class OutputFile {
 public:
  // mode: of a new file, before the umask. All functions throw Error(kIo).
  explicit OutputFile(const std::string& path, mode_t mode = 0666);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::span<const std::byte> bytes);
  void Commit();

  // Refuses what the constructor would, but opens no pipe: its reader would take that for the end.
  static void CheckWritable(const std::string& path);

 private:
  void OpenTemporary(const std::filesystem::path& path, mode_t mode);
  void Close();
  [[noreturn]] void Refuse(int error) const;

  const std::string name_;        // for messages
  std::filesystem::path target_;  // the final path
  std::string temporary_;         // empty if written directly
  std::optional<RemovedOnSignal> removed_;
  int file_ = -1;
};

// Whether the path names a descriptor of this process, as "-" and /dev/fd/3 do.
bool IsOwnDescriptor(std::string_view path);

// The target of a path, even if nothing is there yet. For a circle of links, one of them.
std::filesystem::path FollowLinks(std::filesystem::path path);

// Writes a whole file at once. Throws Error(kIo).
void WriteFile(const std::string& path, std::string_view text, mode_t mode = 0666);

}  // namespace godwit::console
