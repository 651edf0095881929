// KvView: the cached keys and values of one layer of one text, as operations read and write them.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "ops/kv_layout.h"
#include "tensor/dtype.h"
#include "tensor/page_data.h"

namespace godwit::ops {

// The text positions [begin, end).
struct KvRange {
  int64_t begin;
  int64_t end;
};

// The keys and values of one layer of one text: position p lies in tile p / kTileTokens.
struct KvView {
  DType dtype;            // F32, F16, BF16 or I8
  const PageData* pages;  // pages of this layer; slot i has pages[i * page_stride]
  int64_t page_stride;
  int64_t slots;
  // Tiles that were dropped; in the slots, tiles behind them directly follow those before. Tiles
  // that were never there have no page.
  int64_t dropped_begin = 0;
  int64_t dropped_end = 0;
  int64_t head_bytes;        // bytes from one KV head to the next
  int64_t value_offset;      // bytes from a head's keys to its values, if it has some
  int64_t scale_offset = 0;  // I8: bytes from a head's keys to the f32 scales of the tile's keys
  // Whether keys are multiplied by a Hadamard matrix (KernelTable::hadamard), so that queries have
  // to be, too.
  bool hadamard = false;
  // Whether keys and values are codes of 4 bits, which are widened to I8.
  bool narrow_keys = false;
  bool narrow_values = false;
  // Bytes from a head's keys to the centre of the tile's keys [head_dim], without which they are
  // stored; 0: no centre.
  int64_t centre_offset = 0;
  // Bytes from a page's beginning to the first head of a layer, where layers share pages, or of
  // index keys.
  int64_t page_offset = 0;
  // The stamp of each slot's tile [slots], as KvCache gives them, and the length of the text. Under
  // a stamp, rows before that length never change, in any text. Null: unknown.
  const uint64_t* stamps = nullptr;
  int64_t length = 0;

  int64_t Slot(int64_t tile) const {
    return tile < dropped_begin ? tile : tile - (dropped_end - dropped_begin);
  }
  bool Holds(int64_t tile) const {
    return (tile < dropped_begin || tile >= dropped_end) && Slot(tile) < slots &&
           pages[Slot(tile) * page_stride];
  }
  // The place of the layer's heads in the tile's page.
  PageData Page(int64_t tile) const {
    assert(Holds(tile));
    return pages[Slot(tile) * page_stride].Behind(page_offset);
  }
  const std::byte* Keys(int64_t head, int64_t tile) const {
    return HostPointer(Page(tile)) + head * head_bytes;
  }
  const std::byte* Values(int64_t head, int64_t tile) const {
    return Keys(head, tile) + value_offset;
  }
  // The centre of a tile's keys, or null.
  const BF16* Centre(int64_t head, int64_t tile) const {
    return centre_offset == 0 ? nullptr
                              : reinterpret_cast<const BF16*>(Keys(head, tile) + centre_offset);
  }
  // The scales of I8: those of the keys [kTileTokens], then those of the values, if there are some.
  const float* Scales(int64_t head, int64_t tile) const {
    return reinterpret_cast<const float*>(Keys(head, tile) + scale_offset);
  }
};

// The pages of one layer of a text, as KvView has them.
struct KvPages {
  const PageData* pages;
  int64_t page_stride;
  int64_t slots;
  int64_t dropped_begin = 0;
  int64_t dropped_end = 0;
  int64_t page_offset = 0;
  const uint64_t* stamps = nullptr;
  int64_t length = 0;
};

// A view of pages in which keys and values lie as `layout`, of one layer, says.
KvView ViewOf(const KvLayout& layout, const KvPages& pages);

}  // namespace godwit::ops
