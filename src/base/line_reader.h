// LineReader: the lines of a file one after the other, of a file of any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/open_file.h"

namespace godwit {

// Not thread-safe. Holds the longest line that came up so far.
class LineReader {
 public:
  // A regular file. Throws Error(kIo) as OpenRegularFile does.
  LineReader(const std::filesystem::path& path, size_t max_line_bytes);

  // The next line without its newline, valid until the next call; nothing at the end. Throws
  // Error(kFormat) for one of more than max_line_bytes, Error(kIo).
  std::optional<std::string_view> Next();

  // The last line that Next gave: its number from 1 on, its place in the file, and whether a
  // newline ends it. The last line of some files has none.
  int64_t number() const { return number_; }
  int64_t offset_bytes() const { return offset_bytes_; }
  bool has_newline() const { return has_newline_; }

  int64_t size_bytes() const { return static_cast<int64_t>(file_.size_bytes); }
  std::string where() const;  // "requests.jsonl:12"

 private:
  bool Fill();  // false at the end of the file

  const std::filesystem::path path_;
  const OpenedFile file_;
  const size_t max_line_bytes_;
  std::string buffer_;
  size_t begin_ = 0, end_ = 0;  // of what is read and not yet given, in buffer_
  int64_t number_ = 0;
  int64_t offset_bytes_ = 0, next_offset_bytes_ = 0;
  bool has_newline_ = true;
};

}  // namespace godwit
