// SnapshotFolder: the snapshots of a folder, of any models, which several processes may share. It
// knows from which of them a text goes on, and which must go when they take too much.
//
// A process never reads half a file: files appear whole, under a name that says what they hold. A
// process that adds or removes some holds the folder's lock. Only files of this user are looked at.
// A clock that jumps makes some go too early or too late, and nothing else. Thread-safe.
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

// Throws Error(kInput) for a name under which nothing can be kept.
void CheckPinName(const std::string& pin);

class SnapshotFolder {
 public:
  using Entry = SnapshotEntry;
  using Piece = SnapshotPiece;
  struct Problem {
    std::filesystem::path file;
    std::string message;
  };

  // Makes the folder, for this user alone, if it does not exist. bytes: the limit for all files
  // together; 0: half of what they take and the disk has left. Throws Error(kIo), and Error(kInput)
  // for a folder of another user.
  SnapshotFolder(const std::filesystem::path& path, int64_t bytes);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path FileOf(const std::string& name) const;

  // The chain with the most of the first tokens of a text, all made by these facts.
  std::vector<Piece> Longest(const SnapshotFacts& facts, std::span<const int32_t> tokens);
  // The result of SnapshotTree::FindByOtherFacts, at the last look into the folder.
  using OtherFactsMatch = SnapshotTree::OtherFactsMatch;
  OtherFactsMatch LongestByOtherFacts(const SnapshotFacts& facts, std::span<const int32_t> tokens);
  // Maps a snapshot, which counts as used now. Null: it is gone, or damaged (TakeProblems).
  std::shared_ptr<const Snapshot> Open(const std::string& name);

  // Saves the first whole tiles of a text, as far as they are not saved: `tokens`, whose keys
  // `cache` has. Removes others that are worth less if there is too much. Returns how many tokens
  // it saved. label: of the text, for people. Throws Error(kIo); Error(kMemory) for more than the
  // folder may hold. states: of recurrent layers, null if the model has none. The text is then
  // saved to the last position whose state is held.
  int64_t Save(const SnapshotFacts& facts, const std::string& label,
               std::span<const int32_t> tokens, const KvCache& cache,
               const StateCache* states = nullptr);

  // Saves an index of a text's first tokens, if the saved one of that kind comes from far fewer and
  // nothing must go for it. Throws Error(kIo).
  void SaveIndex(const SnapshotFacts& facts, std::span<const int32_t> tokens,
                 const TextIndex& index);
  // The index of that kind that comes from the most of a chain's first tokens. Its `tokens` are no
  // more than those of the chain. Null: there is none, or it was damaged (TakeProblems).
  std::unique_ptr<const SavedIndex> OpenIndex(std::span<const Piece> pieces,
                                              const std::string& kind);

  // Keeps the snapshot, and thus its chain, under a name, until another takes that name or Unpin
  // frees it. Throws Error(kInput) for a name that is no plain word.
  void Pin(const std::string& pin, const std::string& name);
  // Frees a name. False: no snapshot had it.
  bool Unpin(const std::string& pin);

  // The tokens of the snapshot that is kept under that name, or called so, made by these facts;
  // none without one.
  std::optional<std::vector<int32_t>> TokensOf(const SnapshotFacts& facts,
                                               const std::string& pin_or_name);
  // All snapshots, those of a text one after the other.
  std::vector<Entry> Entries();
  // Removes a snapshot and those that go on from it; returns how many.
  int64_t Remove(const std::string& name);
  // The files that could not be used since the last call, and were removed or left aside.
  std::vector<Problem> TakeProblems();
  // Removes a snapshot that was found to be damaged.
  void RemoveDamaged(const DamagedSnapshot& damage);
  // Reads all of every file, and returns the damaged ones.
  std::vector<Problem> Verify();

 private:
  // Functions that need the mutex.
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
  std::mutex mutex_;  // guards the members below
  SnapshotTree tree_;
  // Files that make no sense, by name, size and time.
  std::set<std::string> refused_;
  std::vector<Problem> problems_;
};

}  // namespace godwit
