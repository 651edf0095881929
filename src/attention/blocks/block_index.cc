#include "attention/blocks/block_index.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace godwit {

BlockIndex::BlockIndex(const ops::BlockShape& shape, std::shared_ptr<KvPool> pool,
                       std::span<const int64_t> layers)
    : shape_(shape),
      pool_(std::move(pool)),
      heads_(pool_->layout().OfLayer(layers.empty() ? 0 : layers.front())),
      width_(ops::VectorsOf(shape.type) * heads_.head_dim),
      tile_bytes_(shape.signs() ? ops::SignTileBytes(heads_.head_dim)
                                : ops::VectorTileBytes(width_)),
      tiles_per_page_(heads_.head_bytes() / tile_bytes_),
      rank_(static_cast<size_t>(pool_->layout().layers), -1),
      filled_(layers.size(), 0) {
  assert(tiles_per_page_ >= 1);
  assert(shape_.tokens % kTileTokens == 0 || kTileTokens % shape_.tokens == 0);
  if (shape_.signs()) {
    levels_.resize(layers.size() * static_cast<size_t>(heads_.kv_heads * 3 * heads_.head_dim));
    const ops::BlockShape of_tiles{
        .type = ops::RepresentativeType::kMean, .tokens = kTileTokens, .parts = 1};
    means_ = std::make_unique<BlockIndex>(of_tiles, pool_, layers);
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    rank_[layers[i]] = static_cast<int64_t>(i);
  }
}

BlockIndex::BlockIndex(const BlockIndex& other)
    : shape_(other.shape_),
      pool_(other.pool_),
      heads_(other.heads_),
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

int64_t BlockIndex::BytesFor(int64_t blocks) const {
  return static_cast<int64_t>(EntriesFor(blocks)) * pool_->layout().page_bytes() +
         (means_ ? means_->BytesFor(blocks * shape_.tiles()) : 0);
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
  if (means_) means_->Truncate(blocks * shape_.tiles());
  for (int64_t& filled : filled_) filled = std::min(filled, blocks);
  const size_t entries = EntriesFor(blocks);
  if (entries >= ids_.size()) return;
  pool_->Release(std::span(ids_).subspan(entries));
  ids_.resize(entries);
  data_.resize(entries);
}

void BlockIndex::Reserve(int64_t blocks) {
  const Growth own = GrowthTo(blocks);
  const Growth of_means = means_ ? means_->GrowthTo(blocks * shape_.tiles()) : Growth{};
  if (own.pages() + of_means.pages() == 0) return;
  const auto reserve_entries = [](BlockIndex& index, const Growth& growth) {
    index.ids_.reserve(index.ids_.size() + growth.added);
    index.data_.reserve(index.data_.size() + growth.added);
  };
  reserve_entries(*this, own);
  if (means_) reserve_entries(*means_, of_means);
  std::vector<KvPool::PageId> ids(own.pages() + of_means.pages());
  std::vector<PageData> data(ids.size());
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
                      std::span<PageData> data) {
  for (size_t i = 0; i < growth.copied; ++i) {
    PageData& page = data_[growth.first + i];
    CopyPage(page, data[i], pool_->layout().page_bytes());
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
  for (const PageData page : std::span(data_).first(EntriesFor(lasting()))) {
    parts.emplace_back(HostBytes(page, pool_->layout().page_bytes()));
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
         (!means_ || means_->CanRestore(of_means, blocks * shape_.tiles()));
}

void BlockIndex::CopyParts(Parts parts, int64_t blocks) {
  if (means_) means_->CopyParts(MeansOf(parts), blocks * shape_.tiles());
  if (!levels_.empty()) std::memcpy(levels_.data(), parts.front().data(), parts.front().size());
  for (size_t i = 0; i < EntriesFor(blocks); ++i) {
    std::ranges::copy(parts[1 + i], HostBytes(data_[i], std::ssize(parts[1 + i])).begin());
  }
  std::ranges::fill(filled_, blocks);
}

size_t BlockIndex::RankOf(int64_t layer) const {
  const int64_t rank = rank_[layer];
  assert(rank >= 0);
  return static_cast<size_t>(rank);
}

ops::IndexPages BlockIndex::PagesAt(size_t rank) const {
  return {.pages = data_.data() + rank,
          .page_stride = std::ssize(filled_),
          .head_bytes = heads_.head_bytes(),
          .tile_bytes = tile_bytes_,
          .tiles_per_page = tiles_per_page_,
          .width = width_};
}

ops::IndexView BlockIndex::ViewAt(size_t rank) const {
  ops::IndexView view{.shape = shape_,
                      .kv_heads = heads_.kv_heads,
                      .head_dim = heads_.head_dim,
                      .parts = PagesAt(rank)};
  if (means_) {
    view.means = means_->PagesAt(rank);
    view.levels =
        levels_.data() + static_cast<int64_t>(rank) * heads_.kv_heads * 3 * heads_.head_dim;
  }
  return view;
}

void BlockIndex::Fill(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t blocks,
                      int64_t lasting, const ops::ImportantTokens& important) {
  int64_t& filled = filled_[RankOf(layer)];
  if (blocks <= filled) return;
  const ops::IndexView view = View(layer);
  if (shape_.signs() && filled == 0) {
    assert(blocks >= shape_.learnt_blocks);
    ops::LearnLevels(exec, kv, view);
  }
  ops::RepresentBlocks(exec, kv, view, {filled, blocks}, important);
  // Representatives of keys that may still change do not last. The next call makes them again.
  const int64_t lasts = std::min(blocks, lasting);
  if (lasts >= shape_.learnt_blocks) filled = std::max(filled, lasts);
  if (means_) means_->filled_[RankOf(layer)] = filled * shape_.tiles();
}

void BlockIndex::FillGroups(const Exec& exec, int64_t layer, const BlockIndex& finer,
                            int64_t groups, int64_t lasting) {
  int64_t& filled = filled_[RankOf(layer)];
  if (groups <= filled) return;
  ops::RepresentGroups(exec, finer.View(layer), View(layer), {filled, groups});
  filled = std::max(filled, std::min(groups, lasting));
}

}  // namespace godwit
