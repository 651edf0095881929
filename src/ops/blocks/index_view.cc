#include "ops/blocks/index_view.h"

namespace godwit::ops {

int64_t VectorTileBytes(int64_t width) {
  return kernels::KeyElements(kernels::kQuad, width) + kTileTokens * int64_t{sizeof(float)};
}

int64_t SignTileBytes(int64_t head_dim) { return SignGroups(head_dim) * kTileTokens / 2; }

RepresentativeTile IndexPages::Vectors(int64_t head, int64_t i) const {
  const std::byte* const tile = At(head, i);
  return {
      .vectors = reinterpret_cast<const uint8_t*>(tile),
      .scales = reinterpret_cast<const float*>(tile + kernels::KeyElements(kernels::kQuad, width))};
}

int64_t ReadBytes(const IndexView& index, int64_t blocks) {
  const auto bytes_of = [&](const IndexPages& pages, int64_t parts) {
    return (parts + kTileTokens - 1) / kTileTokens * pages.tile_bytes * index.kv_heads;
  };
  const BlockShape& shape = index.shape;
  return bytes_of(index.parts, blocks * shape.parts) +
         (shape.signs() ? bytes_of(index.means, blocks * shape.tiles()) : 0);
}

}  // namespace godwit::ops
