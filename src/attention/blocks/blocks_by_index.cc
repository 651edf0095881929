#include "attention/blocks/blocks_by_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "attention/blocks/held_blocks.h"
#include "ops/blocks/select_blocks.h"
#include "ops/blocks/select_by_groups.h"

namespace godwit {

void BlocksByIndex::LimitToBlocks(const BlockRange& here, int64_t local) {
  here_ = here;
  const int64_t most = geometry_->Shape().learnt_blocks;
  learnt_blocks_ = std::min(most, std::max<int64_t>(1, here.CountBefore(local)));
}

IndexSize BlocksByIndex::SizeAt(const KvLayout& layout, int64_t position) const {
  if (position < geometry_->first_sparse()) return {};
  const auto pool = std::make_shared<KvPool>(layout);
  const BlockIndex index(geometry_->Shape(), pool, geometry_->leaders);
  const int64_t blocks = here_.CountBefore(geometry_->FirstLocal(position));
  const int64_t choosers = geometry_->choosers;
  IndexSize size{.held_bytes = index.BytesFor(blocks),
                 .read_bytes = index.ReadBytes(blocks) * choosers,
                 .read_every_tokens = spec().token_step};
  if (spec().group_blocks == 0) return size;
  const BlockIndex groups(spec().GroupShape(), pool, geometry_->leaders);
  const int64_t all = GroupsOf(blocks);
  size.held_bytes += groups.BytesFor(all);
  if (!SelectsByGroups(blocks)) return size;
  if (groups.shape().type != ops::RepresentativeType::kQuest) {
    const int64_t closed = (all - OpenGroups()) * spec().group_blocks;
    size.read_bytes = index.ReadBytes(blocks - closed) * choosers;
  }
  size.read_bytes += groups.ReadBytes(all) * choosers;
  return size;
}

ops::BlockShape BlocksByIndex::Shape() const {
  ops::BlockShape shape = geometry_->Shape();
  shape.learnt_blocks = std::min(shape.learnt_blocks, learnt_blocks_);
  return shape;
}

TextIndex BlocksByIndex::Save() const {
  const ops::BlockShape shape = Shape();
  // The kind of signs also names their layout (ops::SignTiles) and their origin. Both have
  // changed.
  TextIndex index{.kind = fmt::format(
                      "{}{} tokens={} parts={} learnt={} layers={}", ops::KindOf(shape.type).name,
                      shape.signs() ? " by keys from tile means" : "", shape.tokens, shape.parts,
                      shape.learnt_blocks, fmt::join(geometry_->leaders, ","))};
  if (!index_) return index;
  index.tokens = index_->lasting() * shape.tokens;
  index.parts = index_->parts();
  return index;
}

// Representatives of groups come from those of blocks. They take little time, so they are made
// anew.
void BlocksByIndex::Restore(const KvCache& cache, const TextIndex& saved) {
  if (saved.kind != Save().kind) return;
  index_.emplace(Shape(), cache.pool_in_memory(), geometry_->leaders);
  index_->Restore(saved.parts, saved.tokens / spec().block_size);
}

void BlocksByIndex::Reserve(const RowRun& run) {
  const int64_t blocks = here_.CountBefore(geometry_->FirstLocal(run.position + run.rows - 1));
  const auto make = [&](std::optional<BlockIndex>& index, const ops::BlockShape& shape) {
    if (!index) index.emplace(shape, run.cache->pool_in_memory(), geometry_->leaders);
  };
  make(index_, Shape());
  index_->Reserve(blocks);
  if (spec().group_blocks == 0) return;
  make(groups_, spec().GroupShape());
  groups_->Reserve(GroupsOf(blocks));
}

void BlocksByIndex::Truncate(int64_t length) {
  if (!index_) return;
  // Counts as if a question began at `length`: one will where an answer is taken back.
  const int64_t local = length > geometry_->first_sparse() ? geometry_->FirstLocal(length - 1) : 0;
  const int64_t blocks = here_.CountBefore(local);
  index_->Truncate(blocks);
  if (groups_) groups_->Truncate(GroupsOf(blocks));
}

int64_t BlocksByIndex::Choose(const RowRun& run, int64_t layer, const RunQueries& queries,
                              const BlocksImportance& importance, MatrixView<int32_t> chosen) {
  const int64_t local = geometry_->FirstLocal(run.position), blocks = here_.CountBefore(local);
  const ops::BlockChoice choice{.first = here_.CountBefore(geometry_->initial),
                                .last = blocks,
                                .count = geometry_->ShareOf(here_, local),
                                .sums = spec().sum_scores,
                                .ranked = spec().gradual};
  for (int64_t i = 0; i < chosen.rows; ++i) std::ranges::fill(chosen.RowSpan(i), -1);
  if (choice.count == 0) return 0;
  Fill(queries.exec, run, layer, importance, blocks);
  const auto found = chosen.Cols(0, choice.count);
  // Positions count from the first held block, as if the text began there.
  const int64_t position = run.position - here_.begin * spec().block_size;
  const AttentionGeometry& attention = geometry_->attention;
  int64_t read_bytes = 0;
  if (SelectsByGroups(blocks)) {
    read_bytes =
        ops::SelectByGroups(queries.exec, attention.shape, attention.alibi, index_->View(layer),
                            groups_->View(layer), OpenGroups(), queries.q, position, choice, found);
  } else {
    ops::SelectBlocks(queries.exec, attention.shape, attention.alibi, index_->View(layer),
                      queries.q, position, choice, found);
    read_bytes = index_->ReadBytes(blocks);
  }
  for (int64_t i = 0; i < found.rows; ++i) {
    for (int32_t& block : found.RowSpan(i)) block += static_cast<int32_t>(here_.begin);
  }
  return read_bytes;
}

int64_t BlocksByIndex::OpenGroups() const {
  const int64_t blocks = geometry_->initial + spec().second_block_count;
  return std::max(spec().group_count, (blocks - 1) / spec().group_blocks + 1);
}

void BlocksByIndex::Fill(const Exec& exec, const RowRun& run, int64_t layer,
                         const BlocksImportance& importance, int64_t blocks) {
  const int64_t block_size = spec().block_size, filled = index_->filled(layer);
  const int64_t lasting = LastingBlocks(run, here_, block_size);
  const BlocksImportance::Found important = importance.Of(run, layer, filled, blocks);
  ReadHeldBlocks(run, layer, here_, block_size, filled, blocks,
                 [&](const ops::KvView& kv, int64_t end) {
                   index_->Fill(exec, layer, kv, end, lasting, important.View());
                 });
  if (!groups_) return;
  groups_->FillGroups(exec, layer, *index_, GroupsOf(blocks), GroupsOf(index_->filled(layer)));
}

}  // namespace godwit
