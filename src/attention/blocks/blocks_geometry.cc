#include "attention/blocks/blocks_geometry.h"

namespace godwit {

BlocksGeometry::BlocksGeometry(const AttentionGeometry& attention_geometry,
                               const BlocksSpec& blocks_spec)
    : attention(attention_geometry),
      spec(blocks_spec),
      initial((spec.initial + spec.block_size - 1) / spec.block_size) {
  for (int64_t layer = 0; layer < attention.layers; ++layer) {
    if (Chooses(layer)) {
      if (std::ssize(choosing) % spec.layer_step == 0) leaders.push_back(layer);
      choosing.push_back(layer);
    }
    leader_of.push_back(leaders.size() - 1);
  }
  choosers = std::ssize(leaders);
  for (const int64_t leader : leaders) {
    first_reader.push_back(static_cast<size_t>(choosers));
    if (!attention.readers.empty()) choosers += attention.readers[leader];
  }
  if (!choosing.empty()) attention.shape = attention.ShapeOf(choosing.front());
}

ops::BlockShape BlocksGeometry::Shape() const {
  constexpr int64_t kLearntTokens = 1024;
  ops::BlockShape shape = spec.Shape();
  const int64_t enough = (kLearntTokens + spec.block_size - 1) / spec.block_size;
  shape.learnt_blocks = std::min(enough, initial + spec.second_block_count + 1);
  return shape;
}

int64_t BlocksGeometry::ShareOf(const BlockRange& part, int64_t local) const {
  const auto up_to = [&](int64_t block) {
    const int64_t among = std::clamp(block, initial, local) - initial;
    return spec.second_block_count * among / (local - initial);
  };
  return up_to(part.end) - up_to(part.begin);
}

int64_t BlocksGeometry::PartsOf(int64_t chosen, int64_t local, int64_t position) const {
  const int64_t tiles = spec.block_size / kTileTokens;
  return (initial + chosen - local) * tiles + position / kTileTokens + 1;
}

size_t BlocksGeometry::ListParts(const BlockRange& here, std::span<const int32_t> chosen,
                                 int64_t local, int64_t position,
                                 std::span<ops::TilePart> parts) const {
  const int64_t tiles = spec.block_size / kTileTokens;
  auto next = parts.begin();
  const auto list = [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      *next++ = {.tile = tile, .begin = 0, .end = static_cast<int32_t>(kTileTokens)};
    }
  };
  list(here.begin * tiles, std::min(initial, here.end) * tiles);
  for (const int64_t block : chosen) {
    if (block < 0) break;
    list(block * tiles, (block + 1) * tiles);
  }
  const int64_t seen = position / kTileTokens + 1;
  list(std::max(local, here.begin) * tiles,
       here.end < seen ? std::min(here.end * tiles, seen) : seen);
  return static_cast<size_t>(next - parts.begin());
}

}  // namespace godwit
