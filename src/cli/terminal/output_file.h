// OutputFile: a file that is there whole or not at all.
//
// Written under a temporary name in the same folder, renamed by Commit; without Commit nothing
// remains. A target that exists and is no regular file (/dev/full, a named pipe) is written
// directly; "-" is standard output.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace godwit::cli {

class OutputFile {
 public:
  // Throws Error(kIo), as the others do.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::span<const std::byte> bytes);
  void Commit();

 private:
  void Close();

  std::string path_;       // the target, for messages
  std::string temporary_;  // empty if written directly
  int file_ = -1;
};

// For a flag whose file is written at the end, beside a result on standard output: refuses what
// will not do now, not after an hour. Throws Error(kInput) for "-", Error(kIo) as above.
void CheckOutputFile(std::string_view flag, const std::optional<std::string>& path);

// All of it at once. Throws Error(kIo).
void WriteFile(const std::string& path, std::string_view text);

}  // namespace godwit::cli
