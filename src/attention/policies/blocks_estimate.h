// What a token does not read of its text, estimated: of every block before its window that it does
// not see, the mean key counts as often as the block has tokens, with the mean value
// (block_means.h). A mean's score never says more than there is, as e^x is convex.
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
#include "attention/policies/blocks_geometry.h"
#include "attention/policy.h"

namespace godwit {

// A copy is of a text that goes on from the same tokens.
class BlocksEstimate {
 public:
  explicit BlocksEstimate(std::shared_ptr<const BlocksGeometry> geometry)
      : geometry_(std::move(geometry)) {}

  // Before there is any: it is of these blocks alone.
  void HoldOnly(const BlockRange& here) { here_ = here; }

  int64_t bytes() const { return means_ ? means_->bytes() : 0; }
  // As AttentionPolicy::IndexAt; read by every token.
  IndexSize SizeAt(const KvLayout& layout, int64_t position) const;

  // Room for what the rows of a run see. Throws Error(kMemory).
  void Reserve(const RowRun& run);
  void Truncate(int64_t length);

  // For the row of the run, which has room and a window from block `local` on: to states [heads,
  // ops::StateStride] those over the blocks between the beginning and the window that are not
  // chosen. chosen: as BlocksGeometry::ListParts has it, for each that chooses. Result: bytes read.
  int64_t Estimate(const RowRun& run, int64_t layer, const RunQueries& queries,
                   std::span<const std::span<const int32_t>> chosen, int64_t local,
                   MatrixView<float> states);

 private:
  const BlocksSpec& spec() const { return geometry_->spec; }
  // [1, KV heads or heads, blocks to the end of a tile], as ops::AttentionSource has them.
  MatrixView<const float> Biases(const Exec& exec, int64_t position,
                                 std::span<const std::span<const int32_t>> chosen,
                                 int64_t blocks) const;

  std::shared_ptr<const BlocksGeometry> geometry_;
  BlockRange here_;
  // Their first block is the first that is held.
  std::optional<BlockMeans> means_;
};

}  // namespace godwit
