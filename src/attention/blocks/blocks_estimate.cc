#include "attention/blocks/blocks_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "attention/blocks/held_blocks.h"
#include "ops/alibi.h"

namespace godwit {

IndexSize BlocksEstimate::SizeAt(const KvLayout& layout, int64_t position) const {
  if (!spec().estimate || position < geometry_->first_sparse()) return {};
  const int64_t blocks = here_.CountBefore(geometry_->FirstLocal(position));
  const int64_t read = blocks - here_.CountBefore(geometry_->initial);
  int64_t layers = std::ssize(geometry_->choosing);
  const std::vector<int64_t>& readers = geometry_->attention.readers;
  for (const int64_t layer : geometry_->choosing) layers += readers.empty() ? 0 : readers[layer];
  return {.held_bytes = PagesFor(blocks) * layout.pages() * layout.page_bytes(),
          .read_bytes = layers * read * layout.OfLayer(geometry_->choosing.front()).tile_bytes() /
                        kTileTokens};
}

void BlocksEstimate::Reserve(const RowRun& run) {
  if (!spec().estimate) return;
  if (!means_) {
    means_.emplace(run.cache->pool_in_memory(), spec().block_size, geometry_->choosing);
  }
  means_->Reserve(here_.CountBefore(geometry_->FirstLocal(run.position + run.rows - 1)));
}

void BlocksEstimate::Truncate(int64_t length) {
  if (!means_) return;
  const int64_t local = length > geometry_->first_sparse() ? geometry_->FirstLocal(length - 1) : 0;
  means_->Truncate(here_.CountBefore(local));
}

int64_t BlocksEstimate::Estimate(const RowRun& run, int64_t layer, const RunQueries& queries,
                                 std::span<const std::span<const int32_t>> chosen, int64_t local,
                                 MatrixView<float> states) {
  const Exec& exec = queries.exec;
  const ops::AttentionShape& shape = geometry_->attention.shape;
  const int64_t first = here_.CountBefore(geometry_->initial), last = here_.CountBefore(local);
  const int64_t lasting = LastingBlocks(run, here_, spec().block_size);
  ReadHeldBlocks(
      run, layer, here_, spec().block_size, means_->filled(layer), last,
      [&](const ops::KvView& kv, int64_t end) { means_->Fill(exec, layer, kv, end, lasting); });
  Workspace::Scope scope(exec.workspace);
  // Attention runs now, not with the row's keys: another branch of the step may bring other blocks.
  const ops::AttentionSource source{.kv = means_->View(layer),
                                    .q = queries.q,
                                    .visible = {.begin = first, .end = last},
                                    .biases = Biases(exec, run.position, chosen, last)};
  const ops::AttentionRows row{.first_row = 0,
                               .rows = 1,
                               .position = run.position,
                               .sources = {&source, 1},
                               .states = states.data};
  ops::Attention(exec, shape, /*alibi=*/{}, {&row, 1}, /*sink_logits=*/{},
                 {.cols = shape.heads * shape.value_dim()});
  const KvLayout layout = run.cache->layout().OfLayer(layer);
  return (last - first) * layout.tile_bytes() / kTileTokens;
}

MatrixView<const float> BlocksEstimate::Biases(const Exec& exec, int64_t position,
                                               std::span<const std::span<const int32_t>> chosen,
                                               int64_t blocks) const {
  const ops::Alibi& alibi = geometry_->attention.alibi;
  const int64_t size = spec().block_size, choices = std::ssize(chosen);
  const int64_t rows = alibi.slopes.empty() ? choices : geometry_->attention.shape.heads;
  const auto biases = exec.workspace.Matrix<float>(rows, PagesFor(blocks) * kTileTokens);
  std::vector<float> of_tokens(alibi.slopes.empty() ? 0 : static_cast<size_t>(size));
  for (int64_t row = 0; row < rows; ++row) {
    const auto of_row = biases.RowSpan(row);
    std::ranges::fill(of_row, std::log(static_cast<float>(size)));
    for (int64_t block = 0; !of_tokens.empty() && block < blocks; ++block) {
      ops::FillAlibi(alibi, row, {.query = position, .shift = 0}, (here_.begin + block) * size,
                     of_tokens);
      of_row[block] +=
          std::accumulate(of_tokens.begin(), of_tokens.end(), 0.0f) / static_cast<float>(size);
    }
    for (const int32_t block : chosen[row * choices / rows]) {
      if (block < 0) break;
      of_row[block - here_.begin] = -std::numeric_limits<float>::infinity();
    }
  }
  return biases;
}

}  // namespace godwit
