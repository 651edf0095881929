// MoveKeys: cached keys and values of one text on their way to other positions, in another text.
#pragma once

#include <cstdint>

#include "ops/exec.h"
#include "ops/kv_layout.h"
#include "ops/kv_view.h"
#include "ops/rotary.h"

namespace godwit::ops {

struct MovedRows {
  KvView from;            // of the layer
  int64_t from_position;  // of the first row
  KvView to;              // of the layer, with pages for all of the positions
  int64_t position;       // of the first row
  int64_t rows;
  RotaryTable turn;  // one row: the rotation from the old position to the new one
};

// Reads keys as they are stored, turns them, and stores them and their values anew (store_row.h).
// Keys and values have thus been rounded or quantized twice. The layout is that of both texts, and
// not centred. On all cores. Throws what StoreRow throws, with the number of the layer.
void MoveKeys(const Exec& exec, const KvLayout& layout, int64_t layer, const MovedRows& moved);

}  // namespace godwit::ops
