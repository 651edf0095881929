#include "ops/store_keys.h"

#include <algorithm>
#include <cassert>

#include "ops/store_row.h"

namespace godwit::ops {
namespace {

// For fewer rows, waking the other cores costs more than the work.
constexpr int64_t kFewRows = 8;

int64_t FirstTile(const StoredRows& text) { return text.position / kTileTokens; }

int64_t TilesOf(const StoredRows& text) {
  return (text.end() - 1) / kTileTokens - FirstTile(text) + 1;
}

// Stores the mean of a head's keys, rotated by the mean rotation of the tile's positions.
void StoreRotatedCentre(const Exec& exec, const KvLayout& layout, const StoredRows& text,
                        int64_t head, int64_t tile, std::span<const float> means, float* centre) {
  if (means.empty()) return StoreCentre(exec.kernels, layout, text.to, head, tile, {});
  const int64_t row = tile - FirstTile(text);
  std::copy_n(means.data() + head * layout.head_dim, layout.head_dim, centre);
  exec.kernels.rotate_half(text.tiles.cos.Row(row), text.tiles.sin.Row(row), text.tiles.cos.cols,
                           centre);
  StoreCentre(exec.kernels, layout, text.to, head, tile,
              {centre, static_cast<size_t>(layout.head_dim)});
}

// key: memory for one key.
void StoreTile(const Exec& exec, const KvLayout& layout, int64_t layer, const StoredRows& text,
               int64_t head, int64_t tile, const StepKeys& keys, float* key) {
  const int64_t begin = std::max(text.position, tile * kTileTokens);
  const int64_t end = std::min(text.end(), (tile + 1) * kTileTokens);
  const RotaryTable& turns = text.positions;
  if (layout.centred) StoreRotatedCentre(exec, layout, text, head, tile, keys.means, key);
  for (int64_t p = begin; p < end; ++p) {
    const int64_t row = text.RowAt(p), i = p - text.position, at = head * layout.head_dim;
    std::copy_n(keys.k.Row(row) + at, layout.head_dim, key);
    exec.kernels.rotate_half(turns.cos.Row(i), turns.sin.Row(i), turns.cos.cols, key);
    StoreRow(exec.kernels, layout, text.to, layer, head, p, key,
             layout.values_in_keys ? nullptr : keys.v.Row(row) + at);
  }
}

}  // namespace

void StoreKeys(const Exec& exec, const KvLayout& layout, int64_t layer,
               std::span<const StoredRows> texts, const StepKeys& keys) {
  const ProfilePart measured(exec.profile, StepPart::kRopeAndKv);
  assert(keys.k.cols == layout.kv_heads * layout.head_dim);
  assert(keys.v.rows == (layout.values_in_keys ? 0 : keys.k.rows));
  Workspace::Scope scope(exec.workspace);
  const auto memory = exec.workspace.Matrix<float>(exec.pool.threads(), layout.head_dim);
  const auto ends = exec.workspace.Matrix<int64_t>(1, std::ssize(texts)).RowSpan(0);
  int64_t tasks = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    ends[i] = tasks += TilesOf(texts[i]) * layout.kv_heads;
  }
  // A core stores the rows of one KV head and tile, so no two cores write into one line of memory.
  const auto store = [&](int64_t task, int worker) {
    const auto of = static_cast<size_t>(std::ranges::upper_bound(ends, task) - ends.begin());
    const StoredRows& text = texts[of];
    const int64_t i = task - (of == 0 ? 0 : ends[of - 1]);
    StoreTile(exec, layout, layer, text, i % layout.kv_heads, FirstTile(text) + i / layout.kv_heads,
              keys, memory.Row(worker));
  };
  if (keys.k.rows < kFewRows) {
    for (int64_t task = 0; task < tasks; ++task) store(task, 0);
  } else {
    exec.Parallel(tasks, store);
  }
}

}  // namespace godwit::ops
