// The snapshots of a folder, of any models, which several processes may share: which of them a text
// goes on from, and which must go when they take too much.
//
// What a process reads is never half written: files appear whole, under a name that says what they
// hold, and a process that adds or removes some holds the folder's lock. Only files of this user
// are looked at. A clock that jumps makes some go too early or too late, and nothing else.
// Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kv/saved_index.h"
#include "kv/snapshot.h"
#include "kv/snapshot_tree.h"

namespace godwit {

// Throws Error(kInput) for a name by which nothing can be kept.
void CheckPinName(const std::string& pin);

class SnapshotFolder {
 public:
  using Entry = SnapshotEntry;
  using Piece = SnapshotPiece;
  struct Problem {
    std::filesystem::path file;
    std::string message;
  };

  // Makes the folder, for this user alone, if it is not there. bytes: what all files may take
  // together; 0: half of what they take and the disk has left. Throws Error(kIo), and Error(kInput)
  // for a folder of another user.
  SnapshotFolder(const std::filesystem::path& path, int64_t bytes);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path FileOf(const std::string& name) const;

  // The chain with the most of the first tokens of a text, all made by these facts.
  std::vector<Piece> Longest(const SnapshotFacts& facts, std::span<const int32_t> tokens);
  // As SnapshotTree::FindOtherwise, of what there was at the last look.
  using Otherwise = SnapshotTree::Otherwise;
  Otherwise LongestOtherwise(const SnapshotFacts& facts, std::span<const int32_t> tokens);
  // Maps one, which counts as used now. Null: it is gone, or damaged (TakeProblems).
  std::shared_ptr<const Snapshot> Open(const std::string& name);

  // Saves what is not there of a text's first whole tiles: `tokens`, whose keys `cache` has, and
  // removes others that are worth less if there is too much. Returns how many tokens it saved.
  // label: of the text, for people. Throws Error(kIo); Error(kMemory) for more than the folder may
  // hold.
  int64_t Save(const SnapshotFacts& facts, const std::string& label,
               std::span<const int32_t> tokens, const KvCache& cache);

  // Saves what is derived from the keys of a text's first tokens, where what there is of that kind
  // comes from far fewer and there is room without anything having to go. Throws Error(kIo).
  void SaveIndex(const SnapshotFacts& facts, std::span<const int32_t> tokens,
                 const TextIndex& index);
  // Of that kind, from the first tokens of a chain: what comes from the most of them. Its `tokens`
  // are no more than those of the chain. Null: there is none, or it was damaged (TakeProblems).
  std::unique_ptr<const SavedIndex> OpenIndex(std::span<const Piece> pieces,
                                              const std::string& kind);

  // The snapshot, and so its chain, stays until another is kept by that name, or none (Unpin).
  // Throws Error(kInput) for a name that is no plain word.
  void Pin(const std::string& pin, const std::string& name);
  // False: there was none.
  bool Unpin(const std::string& pin);

  // The tokens of the one that is kept by that name, or called so, made by these facts. None: there
  // is none.
  std::optional<std::vector<int32_t>> TokensOf(const SnapshotFacts& facts,
                                               const std::string& pin_or_name);
  // All, those of a text one after the other.
  std::vector<Entry> Entries();
  // Removes it and what goes on from it; how many.
  int64_t Remove(const std::string& name);
  // What could not be used since the last call, and was removed or left aside.
  std::vector<Problem> TakeProblems();
  // A snapshot was found to be damaged: it is removed.
  void RemoveDamaged(const DamagedSnapshot& damage);
  // Reads all of every file.
  std::vector<Problem> Verify();

 private:
  // All under the mutex.
  void Refresh();
  void Look(const std::filesystem::directory_entry& file);
  void FindPins();
  std::filesystem::path IndexOf(const std::string& name, const std::string& tag) const;
  void RemoveIndex(Entry& entry, const std::string& tag);
  void Use(Entry& entry);
  void RemoveFile(const std::string& name);
  void RemoveForgotten(const SnapshotInfo& info);
  void Trim(int64_t bytes, const std::string& keep);

  std::filesystem::path path_;
  int64_t bytes_;
  std::mutex mutex_;  // of what follows
  SnapshotTree tree_;
  // Files that make no sense, by name, size and time.
  std::set<std::string> refused_;
  std::vector<Problem> problems_;
};

}  // namespace godwit
