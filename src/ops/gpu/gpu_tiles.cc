#include "ops/gpu/gpu_tiles.h"

#include <algorithm>
#include <cassert>

#include "base/error.h"
#include "cuda/device.h"
#include "ops/kv_layout.h"

namespace godwit::ops {
namespace {

// The rows of a tile among the first `positions` of a text.
int64_t RowsIn(int64_t tile, int64_t positions) {
  return std::clamp<int64_t>(positions - tile * kernels::kTileTokens, 0, kernels::kTileTokens);
}

}  // namespace

int64_t GpuTileBytes(const AttentionShape& shape, int64_t layers, int64_t tiles) {
  const KvLayout layout{.layers = layers,
                        .kv_heads = shape.kv_heads,
                        .head_dim = shape.head_dim,
                        .dtype = DType::kBF16};
  return tiles * layers * shape.kv_heads * layout.head_bytes();
}

GpuTiles::GpuTiles(Gpu& gpu, int64_t layers, int64_t bytes)
    : layers_(layers), memory_(std::make_unique<cuda::DeviceMemory>(gpu.Take(bytes))) {}

GpuTiles::~GpuTiles() = default;

std::span<GpuTiles::Place> GpuTiles::Find(const KvView& kv, int64_t kv_heads, int64_t layer,
                                          const NearCut& cut, int64_t last) {
  assert(kv.stamps != nullptr && layer < layers_);
  LetTilesHave(kv_heads * kv.head_bytes);
  if (cut.count() > std::ssize(slots_)) {
    Throw(ErrorKind::kMemory,
          "the GPU has memory for the keys and values of {} tokens, stored as {}, and {} are near",
          std::ssize(slots_) * kernels::kTileTokens, KvTypeName(kv.dtype),
          cut.count() * kernels::kTileTokens);
  }
  ++calls_;
  places_.clear();
  for (int64_t tile = 0; tile < cut.sinks; ++tile) places_.push_back({.tile = tile});
  for (int64_t tile = cut.window; tile < cut.end; ++tile) places_.push_back({.tile = tile});
  // Tiles that are there come first, so that none of them makes room for another.
  for (Place& place : places_) {
    const auto found = by_stamp_.find(kv.stamps[kv.Slot(place.tile)]);
    if (found == by_stamp_.end()) continue;
    slots_[found->second].used = calls_;
    place.copy = CopyOf(found->second, layer);
    const int64_t has = rows_[found->second * layers_ + layer];
    place.missing = has < RowsIn(place.tile, last + 1);
  }
  for (Place& place : places_) {
    if (place.copy != nullptr) continue;
    place.copy = CopyOf(TakeSlot(kv.stamps[kv.Slot(place.tile)]), layer);
    place.missing = true;
  }
  return places_;
}

void GpuTiles::Copied(const KvView& kv, int64_t layer, const Place& place) {
  const size_t slot = by_stamp_.at(kv.stamps[kv.Slot(place.tile)]);
  rows_[slot * layers_ + layer] = static_cast<uint8_t>(RowsIn(place.tile, kv.length));
  ++copied_tiles_;
}

// Other tiles than before have another size, and all copies go.
void GpuTiles::LetTilesHave(int64_t tile_bytes) {
  if (tile_bytes == tile_bytes_) return;
  tile_bytes_ = tile_bytes;
  by_stamp_.clear();
  slots_.assign(static_cast<size_t>(memory_->bytes() / (layers_ * tile_bytes)), Slot());
  rows_.assign(slots_.size() * layers_, 0);
}

size_t GpuTiles::TakeSlot(uint64_t stamp) {
  assert(stamp != 0);
  const auto oldest = std::ranges::min_element(slots_, {}, &Slot::used);
  assert(oldest->used < calls_);
  if (oldest->stamp != 0) by_stamp_.erase(oldest->stamp);
  *oldest = {.stamp = stamp, .used = calls_};
  const auto slot = static_cast<size_t>(oldest - slots_.begin());
  std::fill_n(rows_.begin() + static_cast<std::ptrdiff_t>(slot * layers_), layers_, 0);
  by_stamp_[stamp] = slot;
  return slot;
}

uint8_t* GpuTiles::CopyOf(size_t slot, int64_t layer) const {
  const int64_t place = static_cast<int64_t>(slot) * layers_ + layer;
  return reinterpret_cast<uint8_t*>(memory_->address()) + place * tile_bytes_;
}

}  // namespace godwit::ops
