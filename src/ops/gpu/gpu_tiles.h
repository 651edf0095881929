// GpuTiles: copies of tiles of keys and values that a GPU keeps from step to step, because the next
// step reads nearly the same ones.
//
// A copy is known by the stamp of its tile (KvView::stamps). Rows under a stamp that belong to the
// text never change, and only these count as kept. Rows of a step in progress lie behind them, so
// their tile is copied in each step. Thus no fork, draft, failed step or return to an earlier
// length can meet another text's rows. Where memory is full, the tiles that were read least
// recently go.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ops/attention.h"
#include "ops/gpu/gpu.h"
#include "ops/gpu/near_tiles.h"

namespace godwit::cuda {
class DeviceMemory;
}

namespace godwit::ops {

// The bytes of `tiles` copies of keys and values of two bytes a number, in all layers.
int64_t GpuTileBytes(const AttentionShape& shape, int64_t layers, int64_t tiles);

class GpuTiles {
 public:
  // Takes memory of the GPU. layers: those with keys, each of which has its part of a tile.
  GpuTiles(Gpu& gpu, int64_t layers, int64_t bytes);
  ~GpuTiles();
  GpuTiles(const GpuTiles&) = delete;
  GpuTiles& operator=(const GpuTiles&) = delete;

  // A tile of the call: its copy on the GPU, which is to be made anew if `missing`.
  struct Place {
    int64_t tile = 0;
    uint8_t* copy = nullptr;
    bool missing = false;
  };
  // Finds the places of a layer's near tiles, in ascending order: [cut.count()]. last: the last
  // position that is read. Places are valid until the next call. Throws Error(kMemory) if not all
  // tiles fit at once.
  std::span<Place> Find(const KvView& kv, int64_t kv_heads, int64_t layer, const NearCut& cut,
                        int64_t last);
  // A copy was made of the tile as it is now.
  void Copied(const KvView& kv, int64_t layer, const Place& place);

  // The copies that were made so far, for tests.
  int64_t copied_tiles() const { return copied_tiles_; }

 private:
  struct Slot {
    uint64_t stamp = 0;  // 0: it is free
    uint64_t used = 0;   // the number of the last call that read it
  };

  void LetTilesHave(int64_t tile_bytes);
  size_t TakeSlot(uint64_t stamp);
  uint8_t* CopyOf(size_t slot, int64_t layer) const;

  int64_t layers_;
  std::unique_ptr<cuda::DeviceMemory> memory_;
  int64_t tile_bytes_ = 0;  // of a layer
  std::vector<Slot> slots_;
  std::vector<uint8_t> rows_;  // that a copy has of the text [slots, layers]
  std::unordered_map<uint64_t, size_t> by_stamp_;
  std::vector<Place> places_;
  uint64_t calls_ = 0;
  int64_t copied_tiles_ = 0;
};

}  // namespace godwit::ops
