// BlocksByIndex: the choice of blocks by their representatives, in the index of a text
// (block_index.h). With two levels there is also an index of groups, which says where to look.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "attention/blocks/block_index.h"
#include "attention/blocks/blocks_geometry.h"
#include "attention/blocks/blocks_importance.h"
#include "attention/core/policy.h"

namespace godwit {

// A copy is for a text that goes on from the same tokens.
class BlocksByIndex {
 public:
  explicit BlocksByIndex(std::shared_ptr<const BlocksGeometry> geometry)
      : geometry_(std::move(geometry)), learnt_blocks_(geometry_->Shape().learnt_blocks) {}

  // Limits the index to these blocks, before there is one. The first row that chooses has its
  // window from `local` on.
  void LimitToBlocks(const BlockRange& here, int64_t local);

  int64_t bytes() const {
    return (index_ ? index_->bytes() : 0) + (groups_ ? groups_->bytes() : 0);
  }
  // As DerivedIndex has it.
  IndexSize SizeAt(const KvLayout& layout, int64_t position) const;

  // Reserves memory for the representatives by which the rows of a run choose. Throws
  // Error(kMemory).
  void Reserve(const RowRun& run);
  void Truncate(int64_t length);

  // Save and restore the index as DerivedIndex does, for a text that is held whole.
  TextIndex Save() const;
  void Restore(const KvCache& cache, const TextIndex& saved);

  // Chooses for the row of the run, after Reserve. chosen [choices, second_block_count] gets the
  // row's share (BlocksGeometry::ShareOf) of held blocks between the beginning and its window, and
  // -1 behind them. Returns the bytes read.
  int64_t Choose(const RowRun& run, int64_t layer, const RunQueries& queries,
                 const BlocksImportance& importance, MatrixView<int32_t> chosen);

 private:
  const BlocksSpec& spec() const { return geometry_->spec; }
  ops::BlockShape Shape() const;
  // The number of groups that are opened. Their blocks suffice for the choice, even behind those
  // that are seen anyway.
  int64_t OpenGroups() const;
  int64_t GroupsOf(int64_t blocks) const { return blocks / spec().group_blocks; }
  bool SelectsByGroups(int64_t blocks) const {
    return spec().group_blocks > 0 && GroupsOf(blocks) > OpenGroups();
  }
  // Fills the index. blocks: counted among held ones.
  void Fill(const Exec& exec, const RowRun& run, int64_t layer, const BlocksImportance& importance,
            int64_t blocks);

  std::shared_ptr<const BlocksGeometry> geometry_;
  BlockRange here_;
  int64_t learnt_blocks_;
  // The index of blocks and that of groups. Their first block is the first that is held.
  std::optional<BlockIndex> index_, groups_;
};

}  // namespace godwit
