// PartialFile: a file of the cache during its download. It survives the end of its process, and the
// download is resumed.
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
  // Opens or makes the file. hashed: computes the SHA-256 of the bytes that are there and of those
  // that are added. All functions throw Error(kIo); this one also throws Error(kCancelled).
  PartialFile(std::filesystem::path path, bool hashed, const CancelToken* cancel);

  int64_t size() const { return size_; }
  void Restart();  // empties the file
  void Append(std::string_view bytes);

  std::string sha256() const { return hash_.Hex(); }

  // Syncs the file to the disk and renames it.
  void Finish(const std::filesystem::path& target);
  void Remove();

 private:
  void HashExistingBytes(const CancelToken* cancel);

  const std::filesystem::path path_;
  const bool hashed_;
  FileDescriptor file_;
  Sha256 hash_;
  int64_t size_ = 0;
};

// BlobLock: huggingface_hub's lock of a blob, held by one process at a time, for the lock's
// lifetime.
class BlobLock {
 public:
  // Waits for the lock; on_wait is called once if it is held. Throws Error(kIo), Error(kCancelled).
  BlobLock(const std::filesystem::path& file, const std::function<void()>& on_wait,
           const CancelToken* cancel);

 private:
  FileDescriptor file_;  // closing it unlocks
};

}  // namespace godwit::hub
