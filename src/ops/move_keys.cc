#include "ops/move_keys.h"

#include <algorithm>
#include <cassert>
#include <span>

#include "ops/read_keys.h"
#include "ops/store_row.h"

namespace godwit::ops {
namespace {

// The numbers of one head, as memory of a core: tiles [head_dim, kTileTokens], and one row of each.
struct HeadMemory {
  explicit HeadMemory(std::span<float> memory, int64_t head_dim)
      : keys(memory.data()),
        values(keys + head_dim * kTileTokens),
        key(values + head_dim * kTileTokens),
        value(key + head_dim) {}
  static int64_t Floats(int64_t head_dim) { return head_dim * (2 * kTileTokens + 2); }
  float *keys, *values, *key, *value;
};

// Moves the rows of one head that go into a tile. They come from two tiles at most.
void MoveTile(const Exec& exec, const KvLayout& layout, int64_t layer, const MovedRows& moved,
              int64_t head, int64_t tile, const HeadMemory& memory) {
  const int64_t dim = layout.head_dim, shift = moved.position - moved.from_position;
  const int64_t begin = std::max(moved.position, tile * kTileTokens);
  const int64_t end = std::min(moved.position + moved.rows, (tile + 1) * kTileTokens);
  int64_t read = -1;  // the tile whose numbers are in memory
  for (int64_t p = begin; p < end; ++p) {
    const int64_t from = (p - shift) / kTileTokens, slot = (p - shift) % kTileTokens;
    if (from != read) {
      ReadKeys(moved.from, dim, head, from, memory.keys, kTileTokens);
      if (!layout.values_in_keys) {
        ReadValues(moved.from, dim, head, from, memory.values, kTileTokens);
      }
      read = from;
    }
    for (int64_t d = 0; d < dim; ++d) {
      memory.key[d] = memory.keys[d * kTileTokens + slot];
      memory.value[d] = memory.values[d * kTileTokens + slot];
    }
    const MatrixView<const float>& cos = moved.turn.cos;
    exec.kernels.rotate_half(cos.Row(0), moved.turn.sin.Row(0), cos.cols, memory.key);
    StoreRow(exec.kernels, layout, moved.to, layer, head, p, memory.key,
             layout.values_in_keys ? nullptr : memory.value);
  }
}

}  // namespace

void MoveKeys(const Exec& exec, const KvLayout& layout, int64_t layer, const MovedRows& moved) {
  assert(!layout.centred && moved.turn.cos.rows == 1);
  if (moved.rows == 0) return;
  const int64_t first = moved.position / kTileTokens;
  const int64_t tiles = (moved.position + moved.rows - 1) / kTileTokens - first + 1;
  Workspace::Scope scope(exec.workspace);
  const auto memory =
      exec.workspace.Matrix<float>(exec.pool.threads(), HeadMemory::Floats(layout.head_dim));
  // A core stores the rows of one KV head and tile, so no two cores write into one line of memory.
  exec.Parallel(tiles * layout.kv_heads, [&](int64_t task, int worker) {
    MoveTile(exec, layout, layer, moved, task % layout.kv_heads, first + task / layout.kv_heads,
             HeadMemory(memory.RowSpan(worker), layout.head_dim));
  });
}

}  // namespace godwit::ops
