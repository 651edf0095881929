#include "kv/kv_cache.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <utility>

#include "base/checked.h"

namespace godwit {

KvCache::KvCache(std::shared_ptr<KvPool> pool) : pool_(std::move(pool)) {}

KvCache::~KvCache() { pool_->Release(ids_); }

KvCache::KvCache(KvCache&& other) noexcept
    : pool_(other.pool_),
      length_(std::exchange(other.length_, 0)),
      dropped_(std::exchange(other.dropped_, {0, 0})),
      skipped_tiles_(std::exchange(other.skipped_tiles_, 0)),
      ids_(std::exchange(other.ids_, {})),
      data_(std::exchange(other.data_, {})),
      stamps_(std::exchange(other.stamps_, {})),
      file_read_bytes_(std::exchange(other.file_read_bytes_, 0)),
      restored_tiles_(std::exchange(other.restored_tiles_, 0)),
      verified_tiles_(std::exchange(other.verified_tiles_, {})) {}

KvCache& KvCache::operator=(KvCache other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(length_, other.length_);
  std::swap(dropped_, other.dropped_);
  std::swap(skipped_tiles_, other.skipped_tiles_);
  std::swap(ids_, other.ids_);
  std::swap(data_, other.data_);
  std::swap(stamps_, other.stamps_);
  std::swap(file_read_bytes_, other.file_read_bytes_);
  std::swap(restored_tiles_, other.restored_tiles_);
  std::swap(verified_tiles_, other.verified_tiles_);
  return *this;
}

KvCache KvCache::Fork() const {
  KvCache fork(pool_);
  fork.length_ = length_;
  fork.dropped_ = dropped_;
  fork.skipped_tiles_ = skipped_tiles_;
  fork.file_read_bytes_ = file_read_bytes_;
  fork.restored_tiles_ = restored_tiles_;
  fork.verified_tiles_ = verified_tiles_;
  // Pages that a step reserved and did not use stay out, because both texts would write there.
  const auto entries =
      static_cast<std::ptrdiff_t>(std::min(HeldTiles(length_), tiles()) * layout().pages());
  fork.data_.assign(data_.begin(), data_.begin() + entries);
  fork.ids_.assign(ids_.begin(), ids_.begin() + entries);
  pool_->Share(fork.ids_);
  fork.stamps_.assign(stamps_.begin(), stamps_.begin() + fork.tiles());
  fork.StampTail();
  return fork;
}

int64_t KvCache::ContinueAs(const KvCache& other) {
  assert(pool_ == other.pool_ && other.dropped_.begin == other.dropped_.end);
  int64_t same = std::min(PagesFor(length_), PagesFor(other.length_));
  while (same * kTileTokens > dropped_.end && IdAt(0, same - 1) != other.IdAt(0, same - 1)) {
    --same;
  }
  const int64_t had = std::min({length_, other.length_, same * kTileTokens});
  Truncate(had);
  const auto held = std::ssize(ids_);
  const auto first = static_cast<std::ptrdiff_t>(PagesFor(had) * layout().pages());
  const auto last = static_cast<std::ptrdiff_t>(PagesFor(other.length_) * layout().pages());
  const auto entries = static_cast<size_t>(held + last - first);
  if (entries > ids_.capacity()) {
    ids_.reserve(std::max(entries, 2 * ids_.capacity()));
    data_.reserve(ids_.capacity());
  }
  ids_.insert(ids_.end(), other.ids_.begin() + first, other.ids_.begin() + last);
  data_.insert(data_.end(), other.data_.begin() + first, other.data_.begin() + last);
  pool_->Share(std::span(ids_).subspan(held));
  length_ = other.length_;
  restored_tiles_ = other.restored_tiles_;
  verified_tiles_ = other.verified_tiles_;
  stamps_.insert(stamps_.end(), other.stamps_.begin() + PagesFor(had),
                 other.stamps_.begin() + PagesFor(other.length_));
  StampTail();
  return had;
}

void KvCache::StampTiles() {
  static std::atomic<uint64_t> last{0};
  const auto before = stamps_.size();
  stamps_.resize(tiles());
  for (size_t tile = before; tile < stamps_.size(); ++tile) stamps_[tile] = ++last;
}

void KvCache::StampTail() {
  const int64_t held = HeldTiles(length_);
  if (length_ % kTileTokens == 0 || std::ssize(stamps_) < held) return;
  stamps_.resize(held - 1);
  StampTiles();
}

int64_t KvCache::HeldTiles(int64_t length) const {
  const int64_t tiles = PagesFor(length);
  if (tiles * kTileTokens <= dropped_.begin) return tiles;
  return tiles - (dropped_.end - dropped_.begin) / kTileTokens;
}

int64_t KvCache::Slot(int64_t tile) const {
  const int64_t begin = dropped_.begin / kTileTokens, end = dropped_.end / kTileTokens;
  assert(tile < begin || tile >= end);
  return tile < begin ? tile : tile - (end - begin);
}

KvPool::PageId KvCache::IdAt(int64_t page, int64_t tile) const {
  return ids_[Slot(tile) * layout().pages() + page];
}

void KvCache::Reserve(int64_t tokens) {
  assert(tokens >= 1);
  const int64_t before = tiles();
  const int64_t end = CheckedAdd(length_, tokens).value_or(INT64_MAX);
  const int64_t needed = Slot((end - 1) / kTileTokens) + 1;
  if (needed > before) Grow(needed);
  try {
    CopySharedTail();
  } catch (...) {
    Shrink(before);
    throw;
  }
}

void KvCache::Grow(int64_t tiles) {
  const int64_t held = std::ssize(ids_);
  const int64_t entries = CheckedMul(tiles, layout().pages()).value_or(INT64_MAX);
  if (entries > static_cast<int64_t>(ids_.capacity())) {
    // Tables grow as vectors do, but never for pages that memory cannot hold.
    pool_->Require(entries - held);
    ids_.reserve(std::max(static_cast<size_t>(entries), 2 * ids_.capacity()));
    data_.reserve(ids_.capacity());
    stamps_.reserve(ids_.capacity() / layout().pages());
  }
  const auto first = static_cast<size_t>(held);
  ids_.resize(entries);
  data_.resize(entries);
  try {
    pool_->Take(std::span(ids_).subspan(first), std::span(data_).subspan(first));
  } catch (...) {
    ids_.resize(first);
    data_.resize(first);
    throw;
  }
  StampTiles();
}

// Copies the tile of the next row if other texts share it.
void KvCache::CopySharedTail() {
  if (length_ % kTileTokens == 0) return;
  const auto pages = static_cast<size_t>(layout().pages());
  const auto first = static_cast<size_t>(Slot(length_ / kTileTokens)) * pages;
  if (!pool_->IsShared(ids_[first])) return;
  if (restored_tiles_ > 0) WillReadAll({length_ - 1, length_});  // a copy would hide damage
  std::vector<KvPool::PageId> ids(pages);
  std::vector<PageData> data(pages);
  pool_->Take(ids, data);
  for (size_t page = 0; page < pages; ++page) {
    CopyPage(data_[first + page], data[page], layout().page_bytes());
    data_[first + page] = data[page];
    std::swap(ids_[first + page], ids[page]);
  }
  // All pages go at once, and now: the last text to hold them writes into them.
  pool_->Release(ids);
}

void KvCache::Shrink(int64_t tiles) {
  const auto entries = static_cast<size_t>(tiles * layout().pages());
  if (entries >= ids_.size()) return;
  pool_->Release(std::span(ids_).subspan(entries));
  ids_.resize(entries);
  data_.resize(entries);
  StampTiles();
}

void KvCache::Skip(int64_t position) {
  assert(position >= length_ && dropped_.begin == dropped_.end);
  Shrink(HeldTiles(length_));
  length_ = position;
  const auto entries = static_cast<size_t>(position / kTileTokens * layout().pages());
  if (entries <= ids_.size()) return;
  ids_.resize(entries, KvPool::kNoPage);
  data_.resize(entries);
  StampTiles();
  CountSkipped();
}

void KvCache::Restore(const std::shared_ptr<const Snapshot>& snapshot, int64_t end) {
  const SnapshotInfo& info = snapshot->info();
  assert(length_ % kTileTokens == 0 && end % kTileTokens == 0);
  assert(info.begin <= length_ && length_ < end && end <= info.end());
  Shrink(HeldTiles(length_));
  const int64_t begin = length_ / kTileTokens, before = std::ssize(ids_);
  const bool forgets = info.dropped.end > info.dropped.begin;
  assert(!forgets || (length_ == 0 && end == info.end()));
  const int64_t tiles = forgets ? info.held_tiles() : end / kTileTokens - begin;
  ids_.resize(before + tiles * layout().pages(), KvPool::kNoPage);
  data_.resize(ids_.size());
  try {
    int64_t held = 0;  // tiles of the snapshot before the range
    for (const ops::KvRange& range : info.held()) {
      const int64_t from = std::max(range.begin, length_), to = std::min(range.end, end);
      const int64_t first = held + (from - range.begin) / kTileTokens;
      const int64_t count = (to - from) / kTileTokens;
      if (count > 0) {
        const int64_t slot = (forgets ? first : from / kTileTokens - begin) * layout().pages();
        const auto entries = static_cast<size_t>(count * layout().pages());
        pool_->Restore(snapshot, first, first + count,
                       std::span(ids_).subspan(before + slot, entries),
                       std::span(data_).subspan(before + slot, entries));
      }
      held += (range.end - range.begin) / kTileTokens;
    }
  } catch (...) {
    Shrink(before / layout().pages());
    throw;
  }
  if (forgets) dropped_ = info.dropped;
  length_ = end;
  StampTiles();
  if (!info.skipped.empty()) CountSkipped();
  restored_tiles_ = end / kTileTokens;
  verified_tiles_.resize(layout().pages());
}

void KvCache::ReserveSkipped(int64_t begin) {
  assert(begin % kTileTokens == 0 && length_ % kTileTokens == 0 && dropped_.end == 0);
  const auto first = static_cast<size_t>(begin / kTileTokens * layout().pages());
  const auto last = static_cast<size_t>(length_ / kTileTokens * layout().pages());
  if (first == last || ids_[first] != KvPool::kNoPage) return;
  std::vector<KvPool::PageId> ids(last - first);
  std::vector<PageData> data(ids.size());
  pool_->Take(ids, data);
  std::ranges::copy(ids, ids_.begin() + static_cast<std::ptrdiff_t>(first));
  std::ranges::copy(data, data_.begin() + static_cast<std::ptrdiff_t>(first));
  CountSkipped();
}

void KvCache::FillTile() {
  const int64_t end = PagesFor(length_) * kTileTokens;
  if (tiles() < HeldTiles(length_)) {
    Skip(end);
  } else {
    length_ = end;
  }
}

std::vector<ops::KvRange> KvCache::SkippedFrom(int64_t begin) const {
  std::vector<ops::KvRange> skipped;
  if (skipped_tiles_ == 0) return skipped;
  for (int64_t at = begin; at < length_; at += kTileTokens) {
    if (IdAt(0, at / kTileTokens) != KvPool::kNoPage) continue;
    if (skipped.empty() || skipped.back().end < at) skipped.push_back({at, at});
    skipped.back().end = at + kTileTokens;
  }
  return skipped;
}

void KvCache::CountSkipped() {
  skipped_tiles_ = std::ranges::count(ids_, KvPool::kNoPage) / layout().pages();
}

void KvCache::Truncate(int64_t length) {
  assert(0 <= length && length <= length_);
  assert(length <= dropped_.begin || length >= dropped_.end);
  const bool shorter = length < length_;
  length_ = length;
  Shrink(HeldTiles(length));
  if (skipped_tiles_ > 0) {
    // The next row's tile either has pages, or is yet to be reserved.
    const int64_t held = tiles();
    if (length % kTileTokens > 0 && held == HeldTiles(length) && ids_.back() == KvPool::kNoPage) {
      Shrink(held - 1);
    }
    CountSkipped();
  }
  if (length <= dropped_.begin) dropped_ = {0, 0};
  if (shorter) StampTail();
}

void KvCache::Drop(ops::KvRange range) {
  const int64_t begin = dropped_.begin < dropped_.end
                            ? dropped_.begin / kTileTokens
                            : (range.begin + kTileTokens - 1) / kTileTokens;
  const int64_t old_end = std::max(begin, dropped_.end / kTileTokens);
  const int64_t end = std::min(range.end, length_) / kTileTokens;
  if (end <= old_end) return;
  const int64_t pages = layout().pages();
  const auto first = begin * pages;
  const auto last = (begin + end - old_end) * pages;
  pool_->Release(std::span(ids_).subspan(first, last - first));
  ids_.erase(ids_.begin() + first, ids_.begin() + last);
  data_.erase(data_.begin() + first, data_.begin() + last);
  stamps_.erase(stamps_.begin() + begin, stamps_.begin() + begin + end - old_end);
  dropped_ = {begin * kTileTokens, end * kTileTokens};
}

ops::KvView KvCache::View(int64_t layer) const {
  return ops::ViewOf(layout().OfLayer(layer), PagesOf(layer));
}

ops::KvView KvCache::IndexView(int64_t layer) const {
  return ops::ViewOf(layout().Index(),
                     PagesAt(layout().IndexPageOf(layer), layout().IndexOffsetOf(layer)));
}

ops::KvPages KvCache::PagesOf(int64_t layer) const {
  return PagesAt(layout().PageOf(layer), layout().OffsetOf(layer));
}

ops::KvPages KvCache::PagesAt(int64_t page, int64_t offset_bytes) const {
  return {.pages = data_.data() + page,
          .page_stride = layout().pages(),
          .slots = tiles(),
          .dropped_begin = dropped_.begin / kTileTokens,
          .dropped_end = dropped_.end / kTileTokens,
          .page_offset = offset_bytes,
          .stamps = stamps_.data(),
          .length = length_};
}

PageData KvCache::PageAt(int64_t page, int64_t tile) const {
  return data_[Slot(tile) * layout().pages() + page];
}

ops::KvRange KvCache::Announced(int64_t page, ops::KvRange positions) const {
  ops::KvRange tiles{positions.begin / kTileTokens, PagesFor(positions.end)};
  tiles.end = std::min(tiles.end, this->tiles() + (dropped_.end - dropped_.begin) / kTileTokens);
  if (pool_->file() != nullptr) return tiles;
  tiles.end = std::min(tiles.end, restored_tiles_);
  if (tiles.begin < tiles.end) {
    tiles.begin = std::max(tiles.begin, verified_tiles_[page]);
  }
  return tiles;
}

void KvCache::WillRead(int64_t layer, ops::KvRange positions) const {
  WillReadPage(layout().PageOf(layer), positions);
}

void KvCache::WillReadIndex(int64_t layer, ops::KvRange positions) const {
  WillReadPage(layout().IndexPageOf(layer), positions);
}

void KvCache::WillReadAll(ops::KvRange positions) const {
  for (int64_t page = 0; page < layout().pages(); ++page) WillReadPage(page, positions);
}

void KvCache::WillReadPage(int64_t page, ops::KvRange positions) const {
  const auto [begin, end] = Announced(page, positions);
  if (begin >= end) return;
  const ops::KvView view = View(0);  // the same tiles are held of all layers
  std::vector<KvPool::PageId> ids;
  for (int64_t tile = begin; tile < end; ++tile) {
    if (view.Holds(tile)) ids.push_back(IdAt(page, tile));
  }
  file_read_bytes_ += pool_->WillRead(ids, 0, layout().page_bytes());
  if (restored_tiles_ == 0) return;
  int64_t& verified = verified_tiles_[page];
  if (begin <= verified) verified = std::max(verified, std::min(end, restored_tiles_));
}

void KvCache::WillRead(int64_t layer, std::span<const ops::TilePart> parts, int64_t first_head,
                       int64_t last_head) const {
  if (pool_->file() == nullptr && restored_tiles_ == 0) return;
  std::vector<KvPool::PageId> ids;
  for (const ops::TilePart& part : parts) ids.push_back(IdAt(layout().PageOf(layer), part.tile));
  const int64_t offset = layout().OffsetOf(layer);
  const int64_t head_bytes = layout().OfLayer(layer).head_bytes();
  file_read_bytes_ +=
      pool_->WillRead(ids, offset + first_head * head_bytes, offset + last_head * head_bytes);
}

}  // namespace godwit
