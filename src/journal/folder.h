// Folder: journals of many answers, one file each, for their owner alone. One process at a time has
// it. Thread-safe.
//
// A file is called NAME.journal, and NAME.done once its answer has ended. Files older than a limit
// go; so do the oldest ones where all together take too many bytes, those that have ended first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/open_file.h"
#include "journal/record_file.h"
#include "journal/writer.h"

namespace godwit::journal {

struct FolderLimits {
  int64_t bytes = int64_t{1} << 30;
  double age_s = 24 * 3600;
};

class Folder {
 public:
  // Makes the folder, of mode 0700. Throws Error(kIo). Throws Error(kInput) for a folder that
  // others may read, and for one that another process has.
  Folder(std::filesystem::path path, FolderLimits limits, Writer::Notice notice);

  // Whether it may be a name: up to 64 letters, digits, dashes and underscores.
  static bool IsName(std::string_view name);

  // Begins a file. Null: it cannot be made, as the notice says.
  std::shared_ptr<File> Begin(const std::string& name);
  // Goes on with a file that Read has found. Null: as Begin, or the file is still being written.
  std::shared_ptr<File> GoOn(const std::string& name, const Records& records);
  // Says that an answer has ended.
  void Finish(const std::string& name, File& file) const;
  // The records of a file; nothing: there is none, or none that can be read.
  std::optional<Records> Read(const std::string& name) const;
  // The files without an end, oldest first.
  std::vector<std::string> Unfinished() const;
  // Removes a file, also from the disk. False: there was none.
  bool Remove(const std::string& name);

 private:
  // Whether somebody still writes the file.
  bool IsOpen(const std::string& name) const;
  std::filesystem::path PathOf(const std::string& name, bool done) const;
  // Removes what is too old, and more until so many bytes may be added. False: they may not.
  bool MakeRoom(int64_t bytes);

  std::filesystem::path path_;
  FolderLimits limits_;
  Writer::Notice notice_;
  FileDescriptor lock_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, std::weak_ptr<File>> open_;
  int64_t bytes_ = 0;  // since all files were last counted
  int64_t counted_at_bytes_ = -1;
  Writer writer_;  // last: its thread uses the others
};

}  // namespace godwit::journal
