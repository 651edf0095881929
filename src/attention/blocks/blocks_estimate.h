// BlocksEstimate: an estimate of the blocks before its window that a token does not see. The mean
// key and the mean value of each count as often as the block has tokens (block_means.h). A mean's
// score never overstates the block, as e^x is convex.
//
// RetroInfer (arXiv 2505.02922) does so for clusters of keys. The spread of the keys as another
// term was measured and left out (docs/results/block-sparse.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "attention/blocks/block_means.h"
#include "attention/blocks/blocks_geometry.h"
#include "attention/core/policy.h"

namespace godwit {

// A copy is for a text that goes on from the same tokens.
class BlocksEstimate {
 public:
  explicit BlocksEstimate(std::shared_ptr<const BlocksGeometry> geometry)
      : geometry_(std::move(geometry)) {}

  // Limits the estimate to these blocks, before there is any.
  void LimitToBlocks(const BlockRange& here) { here_ = here; }

  int64_t bytes() const { return means_ ? means_->bytes() : 0; }
  // The size of the means, as DerivedIndex::SizeAt. Every token reads them.
  IndexSize SizeAt(const KvLayout& layout, int64_t position) const;

  // Reserves memory for the means that the rows of a run see. Throws Error(kMemory).
  void Reserve(const RowRun& run);
  void Truncate(int64_t length);

  // Estimates for the row of the run, after Reserve, with a window from block `local` on. states
  // [heads, ops::StateStride] get those over the blocks between the beginning and the window that
  // are not chosen. chosen: as BlocksGeometry::ListParts has it, a list for each choice. Returns
  // the bytes read.
  int64_t Estimate(const RowRun& run, int64_t layer, const RunQueries& queries,
                   std::span<const std::span<const int32_t>> chosen, int64_t local,
                   MatrixView<float> states);

 private:
  const BlocksSpec& spec() const { return geometry_->spec; }
  // The biases [1, KV heads or heads, blocks to the end of a tile], as ops::AttentionSource has
  // them.
  MatrixView<const float> Biases(const Exec& exec, int64_t position,
                                 std::span<const std::span<const int32_t>> chosen,
                                 int64_t blocks) const;

  std::shared_ptr<const BlocksGeometry> geometry_;
  BlockRange here_;
  // The means. Their first block is the first that is held.
  std::optional<BlockMeans> means_;
};

}  // namespace godwit
