// SnapshotTree: the existing snapshots, and how texts go on through them. Knows no files. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kv/snapshot_header.h"

namespace godwit {

struct SnapshotEntry {
  std::string name;
  std::shared_ptr<const SnapshotInfo> info;
  int64_t bytes = 0;                            // of its file
  std::map<std::string, int64_t> indexes = {};  // bytes of the indexes beside it, by their tags
  std::filesystem::file_time_type used;
  std::vector<std::string> pins;  // names under which it is kept
  bool reachable = false;         // the snapshots from which it goes on exist

  int64_t all_bytes() const;
};

// A snapshot of a chain. It is used up to `end`, or up to where the next one begins.
struct SnapshotPiece {
  std::string name;
  int64_t end;
};

// Whether the text had dropped positions, which the snapshot cannot give back: it is of use only as
// a whole.
inline bool Forgets(const SnapshotInfo& info) { return info.dropped.end > info.dropped.begin; }

// The tokens, of so many, that fill tiles.
inline int64_t WholeTiles(int64_t tokens) { return tokens / kTileTokens * kTileTokens; }

class SnapshotTree {
 public:
  std::map<std::string, SnapshotEntry> entries;  // by their names

  // Updates the links after entries were added or removed. Until then the functions below answer
  // for the entries before.
  void Link();

  int64_t bytes() const;
  const SnapshotEntry* ParentOf(const SnapshotEntry& entry) const;  // null: none, or it is gone
  // The names of snapshots that go on from that one, or from none.
  std::span<const std::string> ChildrenOf(const std::string& name) const;
  // The chain with the most of the first tokens of a text, all made by these facts.
  std::vector<SnapshotPiece> Find(const SnapshotFacts& facts,
                                  std::span<const int32_t> tokens) const;
  // The part of a text that snapshots of the same model and owner have, made by other facts: the
  // number of tokens, and these facts.
  struct OtherFactsMatch {
    int64_t tokens = 0;
    SnapshotFacts facts;
  };
  OtherFactsMatch FindByOtherFacts(const SnapshotFacts& facts,
                                   std::span<const int32_t> tokens) const;
  // An index with that tag, from the most of a chain's first tokens.
  struct FoundIndex {
    std::string name;  // of the snapshot beside which it lies; empty: no index
    int64_t tokens = 0;
  };
  FoundIndex FindIndex(std::span<const SnapshotPiece> pieces, const std::string& tag) const;
  // All entries, those of a text one after the other, and then those that lead nowhere.
  std::vector<SnapshotEntry> InOrder() const;
  // The entry that may go first: no other goes on from it, no name keeps it, and it is not `keep`.
  // Null: there is none.
  const SnapshotEntry* EvictionCandidate(std::filesystem::file_time_type now,
                                         const std::string& keep) const;

 private:
  std::map<std::string, std::vector<std::string>> children_;  // of a name, or of none
};

}  // namespace godwit
