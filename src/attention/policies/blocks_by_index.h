// Choosing blocks by what stands for them: the index of a text (block_index.h), and where there are
// two levels that of its groups, which says where to look.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "attention/blocks/block_index.h"
#include "attention/policies/blocks_geometry.h"
#include "attention/policies/blocks_importance.h"
#include "attention/policy.h"

namespace godwit {

// A copy is of a text that goes on from the same tokens.
class BlocksByIndex {
 public:
  explicit BlocksByIndex(std::shared_ptr<const BlocksGeometry> geometry)
      : geometry_(std::move(geometry)), learnt_blocks_(geometry_->Shape().learnt_blocks) {}

  // Before there is one: it is of these blocks alone, and the first row that chooses has its window
  // from `local` on.
  void HoldOnly(const BlockRange& here, int64_t local);

  int64_t bytes() const {
    return (index_ ? index_->bytes() : 0) + (groups_ ? groups_->bytes() : 0);
  }
  // As AttentionPolicy::IndexAt.
  IndexSize SizeAt(const KvLayout& layout, int64_t position) const;

  // Room for what the rows of a run choose by. Throws Error(kMemory).
  void Reserve(const RowRun& run);
  void Truncate(int64_t length);

  // As AttentionPolicy has them, of a text that is held whole.
  TextIndex index() const;
  void TakeUp(const KvCache& cache, const TextIndex& index);

  // For the row of the run, which has room: to chosen [choices, second_block_count] those held
  // between the beginning and its window that are their share of it (BlocksGeometry::ShareOf), and
  // -1 behind them. Result: bytes read.
  int64_t Choose(const RowRun& run, int64_t layer, const RunQueries& queries,
                 const BlocksImportance& importance, MatrixView<int32_t> chosen);

 private:
  const BlocksSpec& spec() const { return geometry_->spec; }
  BlockShape Shape() const;
  // Groups that are opened, with as many blocks as are chosen behind those that are seen anyway.
  int64_t OpenGroups() const;
  int64_t GroupsOf(int64_t blocks) const { return blocks / spec().group_blocks; }
  bool SelectsByGroups(int64_t blocks) const {
    return spec().group_blocks > 0 && GroupsOf(blocks) > OpenGroups();
  }
  // blocks: of those held.
  void Fill(const Exec& exec, const RowRun& run, int64_t layer, const BlocksImportance& importance,
            int64_t blocks);

  std::shared_ptr<const BlocksGeometry> geometry_;
  BlockRange here_;
  int64_t learnt_blocks_;
  // Their first block is the first that is held.
  std::optional<BlockIndex> index_, groups_;
};

}  // namespace godwit
