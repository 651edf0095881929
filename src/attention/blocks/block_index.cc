#include "attention/blocks/block_index.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "attention/blocks/represent_group.h"
#include "kv/read_keys.h"

namespace godwit {

using kernels::kTileTokens;

BlockIndex::BlockIndex(const BlockShape& shape, std::shared_ptr<KvPool> pool,
                       std::span<const int64_t> layers)
    : shape_(shape),
      pool_(std::move(pool)),
      width_(VectorsOf(shape.type) * pool_->layout().head_dim),
      tile_bytes_(tile_bytes()),
      tiles_per_page_(pool_->layout().head_bytes() / tile_bytes_),
      rank_(static_cast<size_t>(pool_->layout().layers), -1),
      filled_(layers.size(), 0) {
  assert(tiles_per_page_ >= 1 && shape_.tokens % kTileTokens == 0);
  if (shape_.signs()) {
    levels_.resize(layers.size() *
                   static_cast<size_t>(pool_->layout().kv_heads * 3 * pool_->layout().head_dim));
    const BlockShape of_tiles{.type = RepresentativeType::kMean, .tokens = kTileTokens, .parts = 1};
    means_ = std::make_unique<BlockIndex>(of_tiles, pool_, layers);
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    rank_[layers[i]] = static_cast<int64_t>(i);
  }
}

int64_t BlockIndex::tile_bytes() const {
  if (shape_.signs()) {
    return SignGroups(pool_->layout().head_dim) * kTileTokens / 2;
  }
  return VectorTileBytes(width_);
}

int64_t BlockIndex::VectorTileBytes(int64_t width) {
  return kernels::KeyElements(kernels::kQuad, width) + kTileTokens * int64_t{sizeof(float)};
}

BlockIndex::BlockIndex(const BlockIndex& other)
    : shape_(other.shape_),
      pool_(other.pool_),
      width_(other.width_),
      tile_bytes_(other.tile_bytes_),
      tiles_per_page_(other.tiles_per_page_),
      rank_(other.rank_),
      filled_(other.filled_),
      levels_(other.levels_),
      means_(other.means_ ? std::make_unique<BlockIndex>(*other.means_) : nullptr),
      ids_(other.ids_),
      data_(other.data_) {
  pool_->Share(ids_);
}

BlockIndex::~BlockIndex() { pool_->Release(ids_); }

int64_t BlockIndex::ReadBytes(int64_t blocks) const {
  const int64_t read = (blocks * shape_.parts + kTileTokens - 1) / kTileTokens;
  return read * tile_bytes_ * pool_->layout().kv_heads +
         (means_ ? means_->ReadBytes(blocks * tiles()) : 0);
}

int64_t BlockIndex::BytesFor(int64_t blocks) const {
  return static_cast<int64_t>(EntriesFor(blocks)) * pool_->layout().page_bytes() +
         (means_ ? means_->BytesFor(blocks * tiles()) : 0);
}

size_t BlockIndex::EntriesFor(int64_t blocks) const {
  // A block with several tiles of signs may end in another page than it begins in.
  const int64_t per_page = kTileTokens * tiles_per_page_;
  const int64_t pages = (blocks * shape_.parts + per_page - 1) / per_page;
  return static_cast<size_t>(pages) * filled_.size();
}

int64_t BlockIndex::page_of(int64_t block) const {
  return block * shape_.parts / (kTileTokens * tiles_per_page_);
}

void BlockIndex::Truncate(int64_t blocks) {
  if (blocks < shape_.learnt_blocks) blocks = 0;
  if (means_) means_->Truncate(blocks * tiles());
  for (int64_t& filled : filled_) filled = std::min(filled, blocks);
  const size_t entries = EntriesFor(blocks);
  if (entries >= ids_.size()) return;
  pool_->Release(std::span(ids_).subspan(entries));
  ids_.resize(entries);
  data_.resize(entries);
}

void BlockIndex::Reserve(int64_t blocks) {
  const Growth own = GrowthTo(blocks);
  const Growth of_means = means_ ? means_->GrowthTo(blocks * tiles()) : Growth{};
  if (own.pages() + of_means.pages() == 0) return;
  const auto reserve_entries = [](BlockIndex& index, const Growth& growth) {
    index.ids_.reserve(index.ids_.size() + growth.added);
    index.data_.reserve(index.data_.size() + growth.added);
  };
  reserve_entries(*this, own);
  if (means_) reserve_entries(*means_, of_means);
  std::vector<KvPool::PageId> ids(own.pages() + of_means.pages());
  std::vector<std::byte*> data(ids.size());
  pool_->Take(ids, data);
  Grow(own, std::span(ids).first(own.pages()), std::span(data).first(own.pages()));
  if (!means_) return;
  means_->Grow(of_means, std::span(ids).subspan(own.pages()), std::span(data).subspan(own.pages()));
}

BlockIndex::Growth BlockIndex::GrowthTo(int64_t blocks) const {
  const int64_t layers = std::ssize(filled_);
  if (blocks == 0 || layers == 0) return {};
  const size_t entries = EntriesFor(blocks), held = ids_.size();
  const auto first = static_cast<size_t>(page_of(lasting()) * layers);
  return {.first = first,
          .copied = first < held && pool_->IsShared(ids_[first]) ? held - first : 0,
          .added = entries > held ? entries - held : 0};
}

void BlockIndex::Grow(const Growth& growth, std::span<KvPool::PageId> ids,
                      std::span<std::byte*> data) {
  for (size_t i = 0; i < growth.copied; ++i) {
    std::byte*& page = data_[growth.first + i];
    std::memcpy(data[i], page, pool_->layout().page_bytes());
    page = data[i];
    std::swap(ids_[growth.first + i], ids[i]);
  }
  pool_->Release(ids.first(growth.copied));
  const auto added = ids.subspan(growth.copied);
  ids_.insert(ids_.end(), added.begin(), added.end());
  const auto pages = data.subspan(growth.copied);
  data_.insert(data_.end(), pages.begin(), pages.end());
}

int64_t BlockIndex::lasting() const {
  return filled_.empty() ? 0 : *std::ranges::min_element(filled_);
}

std::vector<std::span<const std::byte>> BlockIndex::parts() const {
  std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(levels_))};
  const auto page_bytes = static_cast<size_t>(pool_->layout().page_bytes());
  for (const std::byte* const page : std::span(data_).first(EntriesFor(lasting()))) {
    parts.emplace_back(page, page_bytes);
  }
  if (!means_) return parts;
  const auto of_means = means_->parts();
  parts.insert(parts.end(), of_means.begin(), of_means.end());
  return parts;
}

BlockIndex::Parts BlockIndex::MeansOf(Parts parts) {
  // The parts of means begin with their levels, which are empty.
  const auto first = std::ranges::find_if(parts, [](auto part) { return part.empty(); });
  return parts.subspan(first - parts.begin());
}

bool BlockIndex::Restore(Parts parts, int64_t blocks) {
  assert(ids_.empty());
  if (!CanRestore(parts, blocks)) return false;
  Reserve(blocks);
  CopyParts(parts, blocks);
  return true;
}

bool BlockIndex::CanRestore(Parts parts, int64_t blocks) const {
  const Parts of_means = means_ ? MeansOf(parts) : Parts{};
  const Parts own = parts.first(parts.size() - of_means.size());
  const size_t entries = EntriesFor(blocks);
  const auto page_bytes = static_cast<size_t>(pool_->layout().page_bytes());
  if (blocks < std::max<int64_t>(1, shape_.learnt_blocks) || own.size() < 1 + entries ||
      own.front().size() != std::as_bytes(std::span(levels_)).size()) {
    return false;
  }
  const auto is_page = [&](auto page) { return page.size() == page_bytes; };
  return std::ranges::all_of(own.subspan(1, entries), is_page) &&
         (!means_ || means_->CanRestore(of_means, blocks * tiles()));
}

void BlockIndex::CopyParts(Parts parts, int64_t blocks) {
  if (means_) means_->CopyParts(MeansOf(parts), blocks * tiles());
  if (!levels_.empty()) std::memcpy(levels_.data(), parts.front().data(), parts.front().size());
  for (size_t i = 0; i < EntriesFor(blocks); ++i) {
    std::memcpy(data_[i], parts[1 + i].data(), parts[1 + i].size());
  }
  std::ranges::fill(filled_, blocks);
}

size_t BlockIndex::RankOf(int64_t layer) const {
  const int64_t rank = rank_[layer];
  assert(rank >= 0);
  return static_cast<size_t>(rank);
}

std::byte* BlockIndex::TileData(int64_t layer, int64_t head, int64_t i) const {
  const auto page = static_cast<size_t>(i / tiles_per_page_);
  return data_[page * filled_.size() + RankOf(layer)] + head * pool_->layout().head_bytes() +
         i % tiles_per_page_ * tile_bytes_;
}

RepresentativeTile BlockIndex::Tile(int64_t layer, int64_t head, int64_t i) const {
  const std::byte* const tile = TileData(layer, head, i);
  return {.vectors = reinterpret_cast<const uint8_t*>(tile),
          .scales =
              reinterpret_cast<const float*>(tile + kernels::KeyElements(kernels::kQuad, width_))};
}

SignTiles BlockIndex::Signs(int64_t layer, int64_t head, int64_t i) const {
  return {.signs = reinterpret_cast<const uint8_t*>(TileData(layer, head, i)),
          .count = tiles_per_page_ - i % tiles_per_page_};
}

void BlockIndex::Fill(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t blocks,
                      int64_t lasting, const ImportantTokens& important) {
  int64_t& filled = filled_[RankOf(layer)];
  if (blocks <= filled) return;
  const KvLayout& layout = pool_->layout();
  Workspace::Scope scope(exec.workspace);
  // Scratch memory of a worker: the keys of a block, and a representative in floats.
  const auto scratch = exec.workspace.Matrix<float>(
      exec.pool.threads(), layout.head_dim * shape_.tokens + 2 * layout.head_dim);
  if (shape_.signs() && filled == 0) {
    assert(blocks >= shape_.learnt_blocks);
    exec.Parallel(layout.kv_heads, [&](int64_t head, int worker) {
      float* const keys = scratch.Row(worker);
      const auto read = [&](int64_t tile) {
        ReadKeys(kv, layout.head_dim, head, tile, keys, kTileTokens);
        return keys;
      };
      LearnLevels(shape_.learnt_blocks * tiles(), read, layout.head_dim,
                  &levels_[LevelsAt(layer, head)]);
    });
  }
  // A core fills all representatives of one tile. No two cores write into one line of memory,
  // except for the means of signs.
  const int64_t first_tile = filled * shape_.parts / kTileTokens;
  const int64_t missing = (blocks * shape_.parts - 1) / kTileTokens + 1 - first_tile;
  exec.Parallel(missing * layout.kv_heads, [&](int64_t task, int worker) {
    FillTile(exec, layer, kv, task % layout.kv_heads, first_tile + task / layout.kv_heads, blocks,
             important, scratch.Row(worker));
  });
  // Representatives of keys that may still change do not last. The next call makes them again.
  const int64_t lasts = std::min(blocks, lasting);
  if (lasts >= shape_.learnt_blocks) filled = std::max(filled, lasts);
  if (means_) means_->filled_[RankOf(layer)] = filled * tiles();
}

size_t BlockIndex::LevelsAt(int64_t layer, int64_t head) const {
  const KvLayout& layout = pool_->layout();
  return (RankOf(layer) * static_cast<size_t>(layout.kv_heads) + static_cast<size_t>(head)) * 3 *
         static_cast<size_t>(layout.head_dim);
}

SignLevels BlockIndex::Levels(int64_t layer, int64_t head) const {
  return LevelsIn(&levels_[LevelsAt(layer, head)], pool_->layout().head_dim);
}

void BlockIndex::FillTile(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t head,
                          int64_t i, int64_t blocks, const ImportantTokens& important,
                          float* scratch) const {
  if (shape_.signs()) {
    std::byte* const tile = TileData(layer, head, i);
    const int64_t head_dim = pool_->layout().head_dim;
    std::array<int8_t, kernels::kMaxHeadDim> offset;
    ReadKeys(kv, head_dim, head, i, scratch, kTileTokens);
    const float scale = RepresentSigns(exec.kernels, scratch, Levels(layer, head), head_dim,
                                       offset.data(), reinterpret_cast<uint8_t*>(tile));
    means_->Put(layer, head, i, offset.data(), scale);
    return;
  }
  const int64_t per_tile = kTileTokens / shape_.parts;
  const int64_t filled = filled_[RankOf(layer)];
  const int64_t end = std::min(blocks, (i + 1) * per_tile);
  for (int64_t block = std::max(filled, i * per_tile); block < end; ++block) {
    Represent(exec, layer, kv, head, block, important, scratch);
  }
}

void BlockIndex::Represent(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t head,
                           int64_t block, const ImportantTokens& important, float* scratch) const {
  const int64_t head_dim = pool_->layout().head_dim;
  float* const keys = scratch;
  float* const floats = keys + head_dim * shape_.tokens;
  std::array<int8_t, 2 * kernels::kMaxHeadDim + kernels::kQuad> row;
  for (int64_t t = 0; t < tiles(); ++t) {
    ReadKeys(kv, head_dim, head, block * tiles() + t, keys + t * kTileTokens, shape_.tokens);
  }
  const bool dynamic = shape_.type == RepresentativeType::kDynamic;
  const auto places = dynamic && important ? important(head, block) : std::span<const uint16_t>{};
  for (int64_t p = 0; p < shape_.parts; ++p) {
    const int64_t first = places.empty() ? p * shape_.part_tokens() : places[p];
    const float scale =
        godwit::Represent(shape_.type, exec.kernels, keys + first, shape_.tokens,
                          dynamic ? 1 : shape_.part_tokens(), head_dim, floats, row.data());
    Put(layer, head, block * shape_.parts + p, row.data(), scale);
  }
}

void BlockIndex::Put(int64_t layer, int64_t head, int64_t part, const int8_t* row,
                     float scale) const {
  const int64_t slot = part % kTileTokens;
  std::byte* const tile = TileData(layer, head, part / kTileTokens);
  for (int64_t d = 0; d < width_; d += kernels::kQuad) {
    std::byte* const quad = tile + kernels::KeyAt(kernels::kQuad, d, slot);
    for (int64_t i = 0; i < kernels::kQuad; ++i) {
      quad[i] = static_cast<std::byte>(static_cast<uint8_t>(row[d + i]) ^ 0x80);
    }
  }
  std::memcpy(tile + kernels::KeyElements(kernels::kQuad, width_) + slot * int64_t{sizeof(float)},
              &scale, sizeof(scale));
}

void BlockIndex::FillGroups(const Exec& exec, int64_t layer, const BlockIndex& finer,
                            int64_t groups, int64_t lasting) {
  assert(shape_.parts == 1 && shape_.tokens % finer.shape_.tokens == 0);
  int64_t& filled = filled_[RankOf(layer)];
  if (groups <= filled) return;
  const int64_t kv_heads = pool_->layout().kv_heads, blocks = shape_.tokens / finer.shape_.tokens;
  const int64_t first_tile = filled / kTileTokens;
  const int64_t tiles = (groups - 1) / kTileTokens + 1 - first_tile;
  exec.Parallel(tiles * kv_heads, [&](int64_t task) {
    const int64_t head = task % kv_heads, tile = first_tile + task / kv_heads;
    std::array<int8_t, 2 * kernels::kMaxHeadDim + kernels::kQuad> row;
    const int64_t end = std::min(groups, (tile + 1) * kTileTokens);
    for (int64_t group = std::max(filled, tile * kTileTokens); group < end; ++group) {
      const float scale = RepresentGroup(exec.kernels, finer, layer, head, group * blocks,
                                         (group + 1) * blocks, row.data());
      Put(layer, head, group, row.data(), scale);
    }
  });
  filled = std::max(filled, std::min(groups, lasting));
}

}  // namespace godwit
