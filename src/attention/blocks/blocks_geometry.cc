#include "attention/blocks/blocks_geometry.h"

#include <algorithm>
#include <bit>

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
  const int64_t tiles = std::max<int64_t>(1, spec.block_size / kTileTokens);
  const int64_t seen = position / kTileTokens + 1;
  const int64_t beginning = (initial * spec.block_size - 1) / kTileTokens + 1;
  const int64_t window = seen - local * spec.block_size / kTileTokens;
  return std::min(seen, beginning + chosen * tiles + window);
}

size_t BlocksGeometry::ListParts(const BlockRange& here, std::span<const int32_t> chosen,
                                 int64_t local, int64_t position,
                                 std::span<ops::TilePart> parts) const {
  size_t count = 0;
  // Lists tokens. `hidden` has the bits of those that are seen, until all are listed.
  const auto list = [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t tile = begin / kTileTokens, from = begin % kTileTokens;
      const int64_t until = std::min(kTileTokens, end - tile * kTileTokens);
      const uint64_t inside = until - from == kTileTokens
                                  ? ~uint64_t{0}
                                  : ((uint64_t{1} << (until - from)) - 1) << from;
      if (count == 0 || parts[count - 1].tile != tile) {
        parts[count++] = {.tile = tile, .begin = 0, .end = 0, .hidden = 0};
      }
      parts[count - 1].hidden |= inside;
      begin = tile * kTileTokens + until;
    }
  };
  const int64_t size = spec.block_size;
  const auto end_of = [&](int64_t blocks) { return std::min(blocks, here.end) * size; };
  list(here.begin * size, end_of(initial));
  for (const int64_t block : chosen) {
    if (block < 0) break;
    list(block * size, (block + 1) * size);
  }
  // Behind the row's own position a tile holds nothing that the row sees.
  list(std::max(local, here.begin) * size,
       std::min(end_of(position / size + 1), (position / kTileTokens + 1) * kTileTokens));
  for (ops::TilePart& part : parts.first(count)) {
    const uint64_t seen = part.hidden;
    part.begin = std::countr_zero(seen);
    part.end = static_cast<int32_t>(kTileTokens) - std::countl_zero(seen);
    const uint64_t outside = part.end - part.begin == kTileTokens
                                 ? 0
                                 : ~(((uint64_t{1} << (part.end - part.begin)) - 1) << part.begin);
    part.hidden = ~(seen | outside);
  }
  return count;
}

}  // namespace godwit
