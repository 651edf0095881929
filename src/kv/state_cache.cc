#include "kv/state_cache.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "ops/kv_layout.h"

namespace godwit {

StateCache::StateCache(std::shared_ptr<StatePool> pool) : pool_(std::move(pool)) {}

StateCache::~StateCache() {
  Release();
  DropPages(pages_);
}

StateCache::StateCache(StateCache&& other) noexcept
    : pool_(other.pool_),
      length_(std::exchange(other.length_, 0)),
      pages_(std::exchange(other.pages_, {})),
      reserved_(std::exchange(other.reserved_, {})),
      reserved_tokens_(std::exchange(other.reserved_tokens_, 0)),
      tree_(std::exchange(other.tree_, {})) {}

StateCache& StateCache::operator=(StateCache other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(length_, other.length_);
  std::swap(pages_, other.pages_);
  std::swap(reserved_, other.reserved_);
  std::swap(reserved_tokens_, other.reserved_tokens_);
  std::swap(tree_, other.tree_);
  return *this;
}

StateCache StateCache::Fork() const {
  StateCache fork(pool_);
  fork.length_ = length_;
  fork.pages_ = pages_;
  for (const Page& page : pages_) pool_->Share(page.id);
  return fork;
}

int64_t StateCache::bytes() const {
  if (!any()) return 0;
  return (std::ssize(pages_) + std::ssize(reserved_) + std::ssize(tree_.rows) +
          std::ssize(tree_.ends)) *
         layout().page_bytes();
}

void StateCache::TakePages(int64_t count, std::vector<Page>& pages) {
  constexpr size_t kMost = 64;
  StatePool::PageId ids[kMost];
  pages.reserve(pages.size() + static_cast<size_t>(count));
  const size_t before = pages.size();
  try {
    while (count > 0) {
      const std::span<StatePool::PageId> some(ids, std::min<size_t>(kMost, count));
      pool_->Take(some);
      for (const auto id : some) pages.push_back({.tile = -1, .id = id, .data = pool_->Data(id)});
      count -= std::ssize(some);
    }
  } catch (...) {
    while (pages.size() > before) {
      pool_->Release(pages.back().id);
      pages.pop_back();
    }
    throw;
  }
}

template <typename Drops>
void StateCache::DropPagesIf(const Drops& drops) noexcept {
  std::erase_if(pages_, [&](const Page& page) {
    if (!drops(page)) return false;
    pool_->Release(page.id);
    return true;
  });
}

void StateCache::DropPages(std::vector<Page>& pages) noexcept {
  for (const Page& page : pages) pool_->Release(page.id);
  pages.clear();
}

// Makes the page of the text's end its own, and reserves `more` pages.
void StateCache::ReserveTail(int64_t more) {
  Release();
  const bool copies = !pages_.empty() && pool_->IsShared(pages_.back().id);
  const int64_t needed = more + (copies || pages_.empty() ? 1 : 0);
  if (needed == 0) return;
  TakePages(needed, reserved_);
  pages_.reserve(pages_.size() + reserved_.size());  // so that a step ends without an error
  if (needed == more) return;
  Page own = reserved_.back();
  reserved_.pop_back();
  own.tile = length_ / kTileTokens;
  if (pages_.empty()) {
    assert(length_ == 0);
    for (int64_t layer = 0; layer < layout().layers; ++layer) {
      std::fill_n(own.State(layout(), layer), layout().floats, 0.0f);
    }
    pages_.push_back(own);
  } else {
    std::memcpy(own.data, pages_.back().data, layout().page_bytes());
    std::swap(own, pages_.back());
    pool_->Release(own.id);
  }
}

void StateCache::Reserve(int64_t tokens) {
  if (!any()) return;
  const int64_t first = length_ / kTileTokens;
  const int64_t last = (length_ + tokens) / kTileTokens;
  std::vector<int64_t> tiles;
  for (int64_t tile = std::max(first + 1, StateLayout::FirstKept(last)); tile <= last; ++tile) {
    if (StateLayout::IsKept(tile, last)) tiles.push_back(tile);
  }
  ReserveTail(std::ssize(tiles));
  for (size_t i = 0; i < tiles.size(); ++i) reserved_[i].tile = tiles[i];
  reserved_tokens_ = tokens;
}

void StateCache::ReserveTree(std::span<const int32_t> parents) {
  if (!any()) return;
  Tree tree{.parents = {parents.begin(), parents.end()}};
  for (int64_t row = 0; row < std::ssize(parents); ++row) {
    const int32_t parent = parents[row];
    const int64_t position = parent < 0 ? length_ : tree.positions[parent] + 1;
    tree.positions.push_back(position);
    if ((position + 1) % kTileTokens != 0) continue;
    tree.ends.emplace_back(row, Page{.tile = (position + 1) / kTileTokens});
  }
  const int64_t pages = PagesFor(std::ssize(parents));
  ReserveTail(pages + std::ssize(tree.ends));
  tree.rows.assign(reserved_.begin(), reserved_.begin() + pages);
  auto from = reserved_.begin() + pages;
  for (auto& [row, end] : tree.ends) {
    end.id = from->id;
    end.data = from++->data;
  }
  tree_ = std::move(tree);
  reserved_.clear();
}

void StateCache::Release() noexcept {
  if (!any()) return;
  DropPages(reserved_);
  reserved_tokens_ = 0;
  DropPages(tree_.rows);
  for (const auto& [row, page] : tree_.ends) pool_->Release(page.id);
  tree_.ends.clear();
  tree_.parents.clear();
  tree_.positions.clear();
}

bool StateCache::ReleaseKept() noexcept {
  if (pages_.size() < 2) return false;
  const int64_t last = pages_.back().tile;
  DropPagesIf([&](const Page& page) { return page.tile != last; });
  return true;
}

const StateCache::Page* StateCache::Find(int64_t tile) const {
  const auto found = std::ranges::find(pages_, tile, &Page::tile);
  return found == pages_.end() ? nullptr : &*found;
}

// The page in which a step reads a tile. A tile that will not be kept lies where the next one that
// is will lie.
const StateCache::Page& StateCache::PageOfStep(int64_t tile) const {
  if (tile == length_ / kTileTokens) return pages_.back();
  return *std::ranges::lower_bound(reserved_, tile, {}, &Page::tile);
}

int64_t StateCache::pieces() const {
  if (!any()) return 0;
  if (!tree_.parents.empty()) return std::ssize(tree_.parents);
  return (length_ % kTileTokens + reserved_tokens_ + kTileTokens - 1) / kTileTokens;
}

void StateCache::FillPieces(Workspace& workspace, int64_t layer, int64_t first_row,
                            ops::StatePiece* pieces) const {
  if (!any()) return;
  if (!tree_.parents.empty()) return FillTree(workspace, layer, first_row, pieces);
  const int64_t begin = length_ / kTileTokens * kTileTokens, end = length_ + reserved_tokens_;
  const auto rows = workspace.Matrix<float*>(1, end - begin).RowSpan(0);
  for (int64_t at = begin; at < end; at += kTileTokens) {
    const Page& page = PageOfStep(at / kTileTokens);
    const int64_t until = std::min(at + kTileTokens, end), from = std::max(at, length_);
    const auto kept = rows.subspan(at - begin, until - at);
    for (int64_t slot = 0; slot < until - at; ++slot) {
      kept[slot] = page.Row(layout(), layer, slot);
    }
    const bool ends = until == at + kTileTokens;
    *pieces++ = {.first_row = first_row + from - length_,
                 .rows = until - from,
                 .begin = page.State(layout(), layer),
                 .kept = kept,
                 .end = ends ? PageOfStep(until / kTileTokens).State(layout(), layer) : nullptr};
  }
}

const StateCache::Page* StateCache::EndOf(int64_t row) const {
  const auto found = std::ranges::find(tree_.ends, row, [](const auto& end) { return end.first; });
  return found == tree_.ends.end() ? nullptr : &found->second;
}

float* StateCache::TreeRow(int64_t layer, int64_t row) const {
  return tree_.rows[row / kTileTokens].Row(layout(), layer, row % kTileTokens);
}

// Each row is a piece. Its tile began in the text, or behind an ancestor that ended the one before.
void StateCache::FillTree(Workspace& workspace, int64_t layer, int64_t first_row,
                          ops::StatePiece* pieces) const {
  for (int64_t row = 0; row < std::ssize(tree_.parents); ++row) {
    const int64_t position = tree_.positions[row], begin = position / kTileTokens * kTileTokens;
    const auto kept = workspace.Matrix<float*>(1, position - begin + 1).RowSpan(0);
    int64_t at = row;
    for (; at >= 0 && tree_.positions[at] >= begin; at = tree_.parents[at]) {
      kept[tree_.positions[at] - begin] = TreeRow(layer, at);
    }
    for (int64_t p = begin; p < length_; ++p) {
      kept[p - begin] = pages_.back().Row(layout(), layer, p - begin);
    }
    const Page& from = at < 0 ? pages_.back() : *EndOf(at);
    const Page* const end = EndOf(row);
    *pieces++ = {.first_row = first_row + row,
                 .rows = 1,
                 .begin = from.State(layout(), layer),
                 .kept = kept,
                 .end = end == nullptr ? nullptr : end->State(layout(), layer)};
  }
}

// Drops the pages to which the text need not return.
void StateCache::DropUnkept() noexcept {
  const int64_t last = length_ / kTileTokens;
  DropPagesIf([&](const Page& page) { return !StateLayout::IsKept(page.tile, last); });
}

void StateCache::Append(int64_t tokens) {
  if (!any() || tokens == 0) return;
  assert(tokens == reserved_tokens_);
  length_ += tokens;
  pages_.insert(pages_.end(), reserved_.begin(), reserved_.end());  // has capacity
  reserved_.clear();
  reserved_tokens_ = 0;
  DropUnkept();
}

void StateCache::Accept(int64_t row) {
  if (!any()) return;
  std::vector<int64_t> path;
  for (int64_t at = row; at >= 0; at = tree_.parents[at]) path.push_back(at);
  std::ranges::reverse(path);
  for (const int64_t at : path) {
    const int64_t slot = tree_.positions[at] % kTileTokens;
    for (int64_t layer = 0; layer < layout().layers; ++layer) {
      std::copy_n(TreeRow(layer, at), layout().row_floats,
                  pages_.back().Row(layout(), layer, slot));
    }
    const Page* const end = EndOf(at);
    if (end == nullptr) continue;
    pages_.push_back(*end);  // has capacity
    pool_->Share(end->id);   // Release gives back the tree's
  }
  length_ += std::ssize(path);
  Release();
  DropUnkept();
}

bool StateCache::CanTruncate(int64_t length) const {
  return !any() || length == 0 || length == length_ ||
         (length < length_ && Find(length / kTileTokens) != nullptr);
}

// All rows of an earlier tile are there, since the text once went through it.
int64_t StateCache::RestartPoint(int64_t length) const {
  if (CanTruncate(length)) return length;
  const int64_t tile = std::min(length, length_) / kTileTokens;
  const auto later = std::ranges::upper_bound(pages_, tile, {}, &Page::tile);
  if (later == pages_.begin()) return 0;
  return std::min({length, length_, (std::prev(later)->tile + 1) * kTileTokens - 1});
}

void StateCache::Truncate(int64_t length) {
  if (!any()) return;
  assert(CanTruncate(length));
  Release();
  if (length == length_) return;
  length_ = length;
  const int64_t last = length == 0 ? -1 : length / kTileTokens;
  DropPagesIf([&](const Page& page) { return page.tile > last; });
}

std::vector<int64_t> StateCache::Positions() const {
  std::vector<int64_t> positions;
  for (const Page& page : pages_) {
    if (page.tile > 0) positions.push_back(page.tile * kTileTokens);
  }
  return positions;
}

std::span<const float> StateCache::StateAt(int64_t position, int64_t layer) const {
  return {Find(position / kTileTokens)->State(layout(), layer),
          static_cast<size_t>(layout().floats)};
}

void StateCache::Restore(int64_t position, std::span<const std::byte> state) {
  assert(any() && length_ == 0 && position > 0 && position % kTileTokens == 0);
  const int64_t bytes = layout().floats * int64_t{sizeof(float)};
  assert(std::ssize(state) == layout().layers * bytes);
  Release();
  DropPages(pages_);
  TakePages(1, pages_);
  pages_.back().tile = position / kTileTokens;
  for (int64_t layer = 0; layer < layout().layers; ++layer) {
    std::memcpy(pages_.back().State(layout(), layer), state.data() + layer * bytes, bytes);
  }
  length_ = position;
}

}  // namespace godwit
