// AppendedFile: a file that grows line by line and is there as far as it got, whatever ends the
// process. One process at a time writes to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/open_file.h"

namespace godwit::console {

class AppendedFile {
 public:
  // A regular file; made if it is not there, and taken away again if it stays empty. Throws
  // Error(kInput) for anything else and for a file that another process appends to, Error(kIo) as
  // the others do.
  explicit AppendedFile(const std::string& path);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  const std::string& path() const { return path_; }

  // In one call of the system where it can: whoever reads along sees whole texts.
  void Append(std::string_view text);
  void Truncate(int64_t bytes);
  // Goes on with the file that has taken its place (OutputFile).
  void Reopen();

  // Refuses what the constructor would, but for other processes.
  static void CheckWritable(const std::string& path);

 private:
  const std::string path_;
  const bool existed_;
  FileDescriptor file_;  // locked
};

}  // namespace godwit::console
