#include "ops/blocks/represent_blocks.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "ops/blocks/represent_group.h"
#include "ops/read_keys.h"

namespace godwit::ops {
namespace {

using Representative = std::array<int8_t, 2 * kMaxHeadDim + kernels::kQuad>;

// Writes a representative, with zeros to kQuad.
void Put(const IndexPages& to, int64_t head, int64_t part, const int8_t* row, float scale) {
  const int64_t slot = part % kTileTokens;
  std::byte* const tile = to.At(head, part / kTileTokens);
  for (int64_t d = 0; d < to.width; d += kernels::kQuad) {
    std::byte* const quad = tile + kernels::KeyAt(kernels::kQuad, d, slot);
    for (int64_t i = 0; i < kernels::kQuad; ++i) {
      quad[i] = static_cast<std::byte>(static_cast<uint8_t>(row[d + i]) ^ 0x80);
    }
  }
  std::memcpy(tile + kernels::KeyElements(kernels::kQuad, to.width) + slot * int64_t{sizeof(float)},
              &scale, sizeof(scale));
}

// The tokens whose keys are read together: those of a block, or of the tile that holds it.
int64_t TokensRead(const BlockShape& shape) { return std::max(shape.tokens, kTileTokens); }

// Floats of scratch memory of a core: the keys that are read together, and a representative.
int64_t ScratchFloats(const IndexView& index) {
  return index.head_dim * TokensRead(index.shape) + 2 * index.head_dim;
}

std::span<const uint16_t> PlacesOf(const IndexView& index, const ImportantTokens& important,
                                   int64_t head, int64_t block) {
  if (index.shape.type != RepresentativeType::kDynamic || important.stretches.empty()) return {};
  const int64_t i = block - important.first;
  const auto places = important.stretches[i / important.stretch_blocks];
  if (places.empty()) return {};
  const int64_t row = i % important.stretch_blocks * index.kv_heads + head;
  return places.subspan(row * index.shape.parts, index.shape.parts);
}

// read: the first of the tokens whose keys lie in the scratch memory, or -1.
void RepresentBlock(const Exec& exec, const KvView& kv, const IndexView& index, int64_t head,
                    int64_t block, const ImportantTokens& important, float* scratch,
                    int64_t& read) {
  const BlockShape& shape = index.shape;
  const int64_t together = TokensRead(shape), begin = block * shape.tokens;
  float* const floats = scratch + index.head_dim * together;
  const float* const keys = scratch + begin % together;
  Representative row;
  if (read != begin - begin % together) {
    read = begin - begin % together;
    for (int64_t t = 0; t < together; t += kTileTokens) {
      ReadKeys(kv, index.head_dim, head, (read + t) / kTileTokens, scratch + t, together);
    }
  }
  const bool dynamic = shape.type == RepresentativeType::kDynamic;
  const auto places = PlacesOf(index, important, head, block);
  for (int64_t p = 0; p < shape.parts; ++p) {
    const int64_t first = places.empty() ? p * shape.part_tokens() : places[p];
    const float scale =
        Represent(shape.type, exec.kernels, keys + first, together,
                  dynamic ? 1 : shape.part_tokens(), index.head_dim, floats, row.data());
    Put(index.parts, head, block * shape.parts + p, row.data(), scale);
  }
}

void RepresentSignTile(const Exec& exec, const KvView& kv, const IndexView& index, int64_t head,
                       int64_t i, float* keys) {
  std::array<int8_t, kMaxHeadDim> offset;
  ReadKeys(kv, index.head_dim, head, i, keys, kTileTokens);
  const float scale =
      RepresentSigns(exec.kernels, keys, index.Levels(head), index.head_dim, offset.data(),
                     reinterpret_cast<uint8_t*>(index.parts.At(head, i)));
  Put(index.means, head, i, offset.data(), scale);
}

}  // namespace

void LearnLevels(const Exec& exec, const KvView& kv, const IndexView& index) {
  Workspace::Scope scope(exec.workspace);
  const auto scratch =
      exec.workspace.Matrix<float>(exec.pool.threads(), index.head_dim * kTileTokens);
  exec.Parallel(index.kv_heads, [&](int64_t head, int worker) {
    float* const keys = scratch.Row(worker);
    const auto read = [&](int64_t tile) {
      ReadKeys(kv, index.head_dim, head, tile, keys, kTileTokens);
      return keys;
    };
    LearnLevels(index.shape.learnt_blocks * index.shape.tiles(), read, index.head_dim,
                index.levels + head * 3 * index.head_dim);
  });
}

void RepresentBlocks(const Exec& exec, const KvView& kv, const IndexView& index, KvRange blocks,
                     const ImportantTokens& important) {
  if (blocks.begin >= blocks.end) return;
  Workspace::Scope scope(exec.workspace);
  const auto scratch = exec.workspace.Matrix<float>(exec.pool.threads(), ScratchFloats(index));
  // A core fills all representatives of one tile. No two cores write into one line of memory,
  // except for the means of signs.
  const int64_t first_tile = blocks.begin * index.shape.parts / kTileTokens;
  const int64_t tiles = (blocks.end * index.shape.parts - 1) / kTileTokens + 1 - first_tile;
  exec.Parallel(tiles * index.kv_heads, [&](int64_t task, int worker) {
    const int64_t head = task % index.kv_heads, i = first_tile + task / index.kv_heads;
    if (index.shape.signs()) {
      return RepresentSignTile(exec, kv, index, head, i, scratch.Row(worker));
    }
    const int64_t per_tile = kTileTokens / index.shape.parts;
    const int64_t end = std::min(blocks.end, (i + 1) * per_tile);
    int64_t read = -1;
    for (int64_t block = std::max(blocks.begin, i * per_tile); block < end; ++block) {
      RepresentBlock(exec, kv, index, head, block, important, scratch.Row(worker), read);
    }
  });
}

void RepresentGroups(const Exec& exec, const IndexView& finer, const IndexView& index,
                     KvRange groups) {
  assert(index.shape.parts == 1 && index.shape.tokens % finer.shape.tokens == 0);
  if (groups.begin >= groups.end) return;
  const int64_t blocks = index.shape.tokens / finer.shape.tokens;
  const int64_t first_tile = groups.begin / kTileTokens;
  const int64_t tiles = (groups.end - 1) / kTileTokens + 1 - first_tile;
  exec.Parallel(tiles * index.kv_heads, [&](int64_t task) {
    const int64_t head = task % index.kv_heads, tile = first_tile + task / index.kv_heads;
    Representative row;
    const int64_t end = std::min(groups.end, (tile + 1) * kTileTokens);
    for (int64_t group = std::max(groups.begin, tile * kTileTokens); group < end; ++group) {
      const float scale = RepresentGroup(exec.kernels, finer, head, group * blocks,
                                         (group + 1) * blocks, row.data());
      Put(index.parts, head, group, row.data(), scale);
    }
  });
}

}  // namespace godwit::ops
