// Which snapshots there are, and how texts go on through them. Knows no files. Not thread-safe.
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
  std::map<std::string, int64_t> indexes = {};  // beside it, by their tags: bytes
  std::filesystem::file_time_type used;
  std::vector<std::string> pins;  // names by which it is kept
  bool reachable = false;         // what it goes on from is there

  int64_t all_bytes() const;
};

// Of a chain: goes on up to `end`, or up to where the next one begins.
struct SnapshotPiece {
  std::string name;
  int64_t end;
};

// What has been dropped of a text, its snapshot cannot give back: it is of use as a whole.
inline bool Forgets(const SnapshotInfo& info) { return info.dropped.end > info.dropped.begin; }

// Of so many tokens, those that fill tiles.
inline int64_t WholeTiles(int64_t tokens) {
  return tokens / kernels::kTileTokens * kernels::kTileTokens;
}

class SnapshotTree {
 public:
  std::map<std::string, SnapshotEntry> entries;  // by their names

  // After some were added or removed: the others hold for what there was before.
  void Link();

  int64_t bytes() const;
  const SnapshotEntry* ParentOf(const SnapshotEntry& entry) const;  // null: none, or it is gone
  // What says that it goes on from that, or from none.
  std::span<const std::string> ChildrenOf(const std::string& name) const;
  // The chain with the most of the first tokens of a text, all made by these facts.
  std::vector<SnapshotPiece> Find(const SnapshotFacts& facts,
                                  std::span<const int32_t> tokens) const;
  // Of the same model and owner, made by other facts: how many of the tokens there are, and these.
  struct Otherwise {
    int64_t tokens = 0;
    SnapshotFacts facts;
  };
  Otherwise FindOtherwise(const SnapshotFacts& facts, std::span<const int32_t> tokens) const;
  // An index with that tag, from the most of a chain's first tokens.
  struct FoundIndex {
    std::string name;  // of the snapshot beside which it is; empty: there is none
    int64_t tokens = 0;
  };
  FoundIndex FindIndex(std::span<const SnapshotPiece> pieces, const std::string& tag) const;
  // Those of a text one after the other, and then those that lead nowhere.
  std::vector<SnapshotEntry> InOrder() const;
  // That which may go first: nothing goes on from it, nobody keeps it, and it is not `keep`. Null:
  // there is none.
  const SnapshotEntry* LeastWorth(std::filesystem::file_time_type now,
                                  const std::string& keep) const;

 private:
  std::map<std::string, std::vector<std::string>> children_;  // of a name, or of none
};

}  // namespace godwit
