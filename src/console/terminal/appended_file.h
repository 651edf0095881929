// AppendedFile: a file that grows line by line and keeps what was written, however the process
// ends. One process at a time writes to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/open_file.h"

namespace godwit::console {

class AppendedFile {
 public:
  // Opens or makes a regular file; a new one is removed if it stays empty. Throws Error(kInput) for
  // anything else and for a file that another process appends to. All functions throw Error(kIo).
  explicit AppendedFile(const std::string& path);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  const std::string& path() const { return path_; }

  // Writes in one system call where possible, so that readers see whole texts meanwhile.
  void Append(std::string_view text);
  // Brings the file and its name to the disk.
  void Sync();
  void Truncate(int64_t bytes);
  // Continues with the file that has taken the file's place (OutputFile).
  void Reopen();

  // Refuses what the constructor would, but does not notice other processes.
  static void CheckWritable(const std::string& path);

 private:
  const std::string path_;
  const bool existed_;
  FileDescriptor file_;  // locked
  bool has_name_on_disk_ = false;
};

}  // namespace godwit::console
