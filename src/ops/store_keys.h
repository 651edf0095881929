// StoreKeys: the keys and values of the rows of a step, on their way into the pages of their texts.
#pragma once

#include <cstdint>
#include <span>

#include "ops/exec.h"
#include "ops/kv_layout.h"
#include "ops/kv_view.h"
#include "ops/rotary.h"
#include "tensor/view.h"

namespace godwit::ops {

// The rows that one cache takes: neighbouring positions of its text.
struct StoredRows {
  KvView to;         // of the layer, with pages for all of the positions
  int64_t position;  // of the first row
  // Rows of k and v: those of the first positions, by their numbers, and the neighbours
  // [first_row, first_row + rows) of the positions behind.
  std::span<const int64_t> before;
  int64_t first_row;
  int64_t rows;
  RotaryTable positions;  // row i: of `position` + i
  // With KvLayout::centred and key_means: row i is the mean rotation over the i-th tile from that
  // of `position` on.
  RotaryTable tiles = {};

  int64_t end() const { return position + static_cast<int64_t>(before.size()) + rows; }
  // The row of k and v of a position.
  int64_t RowAt(int64_t p) const {
    const auto i = static_cast<size_t>(p - position);
    return i < before.size() ? before[i] : first_row + static_cast<int64_t>(i - before.size());
  }
};

// The rows of a step, before position encoding.
struct StepKeys {
  MatrixView<const float> k;  // [rows, kv_heads * head_dim]
  MatrixView<const float> v;  // [rows, kv_heads * head_dim], or none with KvLayout::values_in_keys
  // The mean of all keys [kv_heads * head_dim], as far as a model tells, or empty. Rotated as the
  // keys of a tile are, it is the tile's centre.
  std::span<const float> means = {};
};

// Rotates the keys of all texts at their positions and stores them with their values. Each row is
// rounded or quantized once (store_row.h), so the bits do not depend on the rows that come with
// it. The texts have one layout. On all cores, unless the rows are few. Throws what StoreRow
// throws, with the number of the layer.
void StoreKeys(const Exec& exec, const KvLayout& layout, int64_t layer,
               std::span<const StoredRows> texts, const StepKeys& keys);

}  // namespace godwit::ops
