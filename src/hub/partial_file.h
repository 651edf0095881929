// PartialFile: a file of the cache while it is downloaded. It stays where it is when its process
// ends, and is gone on with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/cancel.h"
#include "base/open_file.h"
#include "base/sha256.h"

namespace godwit::hub {

class PartialFile {
 public:
  // Opens it, or makes it. hashed: what is there is read, and what comes is added, for the
  // SHA-256. Throws Error(kIo), as the others do, and Error(kCancelled).
  PartialFile(std::filesystem::path path, bool hashed, const CancelToken* cancel);

  int64_t size() const { return size_; }
  void Restart();  // with nothing
  void Append(std::string_view bytes);

  std::string sha256() const { return hash_.Hex(); }

  // Brings it to the disk and gives it that name.
  void Finish(const std::filesystem::path& target);
  void Remove();

 private:
  void HashWhatIsThere(const CancelToken* cancel);

  const std::filesystem::path path_;
  const bool hashed_;
  FileDescriptor file_;
  Sha256 hash_;
  int64_t size_ = 0;
};

// Held by one process at a time, for as long as it lives: huggingface_hub's lock of a blob, too.
class BlobLock {
 public:
  // Waits; on_wait is called once where it has to. Throws Error(kIo), Error(kCancelled).
  BlobLock(const std::filesystem::path& file, const std::function<void()>& on_wait,
           const CancelToken* cancel);

 private:
  FileDescriptor file_;  // closing it unlocks
};

}  // namespace godwit::hub
