// Snapshot: cached keys and values of a text in a file. It has whole tiles, as they lie in the
// pages of a KvPool, with their tokens and the other facts on which their numbers depend. It also
// has the states of recurrent layers at its end, and at some tiles before.
//
// A long text is a chain of snapshots, each of which goes on from a place in the one before. Texts
// that begin alike share those of their beginning. A file is mapped, and a page comes from the disk
// when it is first looked at. Before that it is compared with its checksum (Verify), so that a page
// that the disk has changed is never computed with. Immutable except for the marks of verified
// pages; thread-safe. Removing the file leaves the mapping as it is.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "kv/snapshot_header.h"
#include "tensor/page_data.h"

namespace godwit {

class KvCache;
class NewFile;
class StateCache;

// The error for a page of a snapshot that is not what was written.
class DamagedSnapshot : public Error {
 public:
  DamagedSnapshot(std::string path, const std::string& message)
      : Error(ErrorKind::kFormat, message), path_(std::move(path)) {}
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Snapshot {
 public:
  // Throws Error(kIo), and what ParseSnapshotHeader throws.
  explicit Snapshot(const std::filesystem::path& path);

  const SnapshotInfo& info() const { return header_.info; }
  const std::string& path() const { return file_.path(); }

  // The memory of a page, 64-byte aligned, never to be written. tile: among those that are held.
  PageData Page(int64_t layer, int64_t tile) const;

  // Reads those of pages [held_tiles, layers] that were not verified yet, best in the order of the
  // file. Throws DamagedSnapshot for a page that is not what was written.
  void Verify(std::span<const int64_t> pages) const;
  void VerifyAll() const;
  // A state [layers, floats], by its index in SnapshotInfo::states. It is read and verified. Throws
  // DamagedSnapshot.
  std::span<const std::byte> State(int64_t index) const;

 private:
  bool IsVerified(int64_t page) const { return verified_[page].load(std::memory_order_relaxed); }
  std::span<const std::byte> BytesOf(int64_t page) const;
  size_t RunOf(std::span<const int64_t> pages) const;
  // action(pages of a run, its place in the file, its bytes)
  template <typename Action>
  void ForEachRun(std::span<const int64_t> pages, const Action& action) const;
  void Announce(std::span<const int64_t> pages) const;
  void LoadIntoMemory(std::span<const int64_t> pages) const;
  void Check(std::span<const int64_t> pages) const;
  [[noreturn]] void Refuse(int64_t page, const char* what) const;

  MappedFile file_;
  SnapshotHeader header_;
  mutable std::vector<std::atomic<bool>> verified_;  // as SnapshotHeader::checksums
};

// Writes the part of `cache` that `info` describes. Throws Error(kIo), and DamagedSnapshot if pages
// of it are another snapshot's and damaged. states: null for a model without recurrent layers.
void WriteSnapshot(NewFile& file, const SnapshotInfo& info, const KvCache& cache,
                   const StateCache* states = nullptr);

}  // namespace godwit
