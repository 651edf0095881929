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

StateCache StateCache::Fork() const {
  StateCache fork(pool_);
  fork.length_ = length_;
  fork.pages_ = pages_;
  return fork;
}

int64_t StateCache::bytes() const {
  if (!any()) return 0;
  int64_t states = std::ssize(tree_.ends), rows = std::ssize(tree_.rows) + std::ssize(tree_.tiles);
  for (const auto* pages : {&pages_, &reserved_}) {
    states += std::ssize(*pages);
    rows += std::ranges::count_if(*pages, [](const Page& page) { return bool{page.rows}; });
  }
  return states * layout().state_bytes() + rows * layout().rows_bytes();
}

float* StateCache::State(const Page& page, int64_t layer) const {
  return page.state.data() + layer * layout().state_stride();
}

float* StateCache::Row(const StateBlock& rows, int64_t layer, int64_t slot) const {
  return rows.data() + (layer * kTileTokens + slot) * layout().row_stride();
}

StateCache::Blocks StateCache::TakeBlocks(int64_t states, int64_t rows) {
  const bool starts = pages_.empty();
  const bool copies = starts || !pages_.back().rows || pages_.back().rows.IsShared();
  Blocks blocks{.states = std::vector<StateBlock>(states + (starts ? 1 : 0)),
                .rows = std::vector<StateBlock>(rows + (copies ? 1 : 0))};
  pages_.reserve(pages_.size() + blocks.states.size());  // so that a step ends without an error
  pool_->Take(blocks.states, blocks.rows);
  if (starts) {
    assert(length_ == 0);
    pages_.push_back({.tile = 0, .state = std::move(blocks.states.back())});
    blocks.states.pop_back();
    for (int64_t layer = 0; layer < layout().layers; ++layer) {
      std::fill_n(State(pages_.back(), layer), layout().floats, 0.0f);
    }
  }
  if (copies) {
    StateBlock own = std::move(blocks.rows.back());
    blocks.rows.pop_back();
    if (const int64_t tokens = length_ % kTileTokens; tokens > 0) {
      for (int64_t layer = 0; layer < layout().layers; ++layer) {
        std::copy_n(Row(pages_.back().rows, layer, 0), tokens * layout().row_stride(),
                    Row(own, layer, 0));
      }
    }
    pages_.back().rows = std::move(own);
  }
  return blocks;
}

void StateCache::Reserve(int64_t tokens) {
  if (!any()) return;
  Release();
  const int64_t first = length_ / kTileTokens;
  const int64_t last = (length_ + tokens) / kTileTokens;
  std::vector<Page> pages;
  for (int64_t tile = std::max(first + 1, StateLayout::FirstKept(last)); tile <= last; ++tile) {
    if (StateLayout::IsKept(tile, last)) pages.push_back({.tile = tile});
  }
  const auto with_rows = std::min(StateLayout::kMostRows, std::ssize(pages));
  Blocks blocks = TakeBlocks(std::ssize(pages), with_rows);
  for (Page& page : pages) {
    page.state = std::move(blocks.states.back());
    blocks.states.pop_back();
    if (!StateLayout::KeepsRows(page.tile, last)) continue;
    page.rows = std::move(blocks.rows.back());
    blocks.rows.pop_back();
  }
  reserved_ = std::move(pages);
  reserved_tokens_ = tokens;
}

void StateCache::ReserveTree(std::span<const int32_t> parents) {
  if (!any()) return;
  Release();
  Tree tree{.parents = {parents.begin(), parents.end()}};
  int64_t deepest = length_;
  for (int64_t row = 0; row < std::ssize(parents); ++row) {
    const int32_t parent = parents[row];
    const int64_t position = parent < 0 ? length_ : tree.positions[parent] + 1;
    tree.positions.push_back(position);
    deepest = std::max(deepest, position + 1);
    if ((position + 1) % kTileTokens != 0) continue;
    tree.ends.emplace_back(row, Page{.tile = (position + 1) / kTileTokens});
  }
  const int64_t tiles = deepest / kTileTokens - length_ / kTileTokens;
  Blocks blocks = TakeBlocks(std::ssize(tree.ends), PagesFor(std::ssize(parents)) + tiles);
  for (auto& [row, end] : tree.ends) {
    end.state = std::move(blocks.states.back());
    blocks.states.pop_back();
  }
  for (int64_t tile = length_ / kTileTokens + 1; tile <= deepest / kTileTokens; ++tile) {
    tree.tiles.push_back({.tile = tile, .rows = std::move(blocks.rows.back())});
    blocks.rows.pop_back();
  }
  tree.rows = std::move(blocks.rows);
  tree_ = std::move(tree);
}

void StateCache::Release() noexcept {
  reserved_.clear();
  reserved_tokens_ = 0;
  tree_ = {};
}

bool StateCache::ReleaseKept() noexcept {
  if (pages_.size() < 2) return false;
  pages_.erase(pages_.begin(), pages_.end() - 1);
  return true;
}

const StateCache::Page* StateCache::Find(int64_t tile) const {
  const auto found = std::ranges::find(pages_, tile, &Page::tile);
  return found == pages_.end() ? nullptr : &*found;
}

// The page in which a step reads a tile's state. A tile that will not be kept lies where the next
// one that is will lie.
const StateCache::Page& StateCache::PageOfStep(int64_t tile) const {
  if (tile == length_ / kTileTokens) return pages_.back();
  return *std::ranges::lower_bound(reserved_, tile, {}, &Page::tile);
}

// The rows of a tile in a step. They lie where those of the next tile that keeps its rows will lie.
const StateBlock& StateCache::RowsOfStep(int64_t tile) const {
  const Page* page = &PageOfStep(tile);
  while (!page->rows) ++page;
  return page->rows;
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
    const StateBlock& block = RowsOfStep(at / kTileTokens);
    const int64_t until = std::min(at + kTileTokens, end), from = std::max(at, length_);
    const auto kept = rows.subspan(at - begin, until - at);
    for (int64_t slot = 0; slot < until - at; ++slot) {
      kept[slot] = Row(block, layer, slot);
    }
    const bool ends = until == at + kTileTokens;
    *pieces++ = {.first_row = first_row + from - length_,
                 .rows = until - from,
                 .begin = State(page, layer),
                 .kept = kept,
                 .end = ends ? State(PageOfStep(until / kTileTokens), layer) : nullptr};
  }
}

const StateCache::Page* StateCache::EndOf(int64_t row) const {
  const auto found = std::ranges::find(tree_.ends, row, [](const auto& end) { return end.first; });
  return found == tree_.ends.end() ? nullptr : &found->second;
}

float* StateCache::TreeRow(int64_t layer, int64_t row) const {
  return Row(tree_.rows[row / kTileTokens], layer, row % kTileTokens);
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
      kept[p - begin] = Row(pages_.back().rows, layer, p - begin);
    }
    const Page& from = at < 0 ? pages_.back() : *EndOf(at);
    const Page* const end = EndOf(row);
    *pieces++ = {.first_row = first_row + row,
                 .rows = 1,
                 .begin = State(from, layer),
                 .kept = kept,
                 .end = end == nullptr ? nullptr : State(*end, layer)};
  }
}

// Drops the pages to which the text need not return, and rows of earlier tiles.
void StateCache::DropUnkept() noexcept {
  const int64_t last = length_ / kTileTokens;
  std::erase_if(pages_, [&](const Page& page) { return !StateLayout::IsKept(page.tile, last); });
  for (Page& page : pages_) {
    if (!StateLayout::KeepsRows(page.tile, last)) page.rows = {};
  }
}

void StateCache::Append(int64_t tokens) {
  if (!any() || tokens == 0) return;
  assert(tokens == reserved_tokens_);
  length_ += tokens;
  std::ranges::move(reserved_, std::back_inserter(pages_));  // has capacity
  Release();
  DropUnkept();
}

void StateCache::Accept(int64_t row) {
  if (!any()) return;
  std::vector<int64_t> path;
  for (int64_t at = row; at >= 0; at = tree_.parents[at]) path.push_back(at);
  std::ranges::reverse(path);
  auto tile = tree_.tiles.begin();
  for (const int64_t at : path) {
    const int64_t slot = tree_.positions[at] % kTileTokens;
    for (int64_t layer = 0; layer < layout().layers; ++layer) {
      std::copy_n(TreeRow(layer, at), layout().row_floats, Row(pages_.back().rows, layer, slot));
    }
    const Page* const end = EndOf(at);
    if (end == nullptr) continue;
    tile->state = end->state;
    pages_.push_back(std::move(*tile++));  // has capacity
  }
  length_ += std::ssize(path);
  Release();
  DropUnkept();
}

bool StateCache::CanTruncate(int64_t length) const {
  if (!any() || length == 0 || length == length_) return true;
  const Page* const page = length < length_ ? Find(length / kTileTokens) : nullptr;
  return page != nullptr && (page->rows || length % kTileTokens == 0);
}

// The rows of an earlier tile that has some are all there, since the text went through it.
int64_t StateCache::RestartPoint(int64_t length) const {
  if (CanTruncate(length)) return length;
  const int64_t tile = std::min(length, length_) / kTileTokens;
  const auto later = std::ranges::upper_bound(pages_, tile, {}, &Page::tile);
  if (later == pages_.begin()) return 0;
  const Page& page = *std::prev(later);
  const int64_t last_slot = page.rows ? kTileTokens - 1 : 0;
  return std::min({length, length_, page.tile * kTileTokens + last_slot});
}

void StateCache::Truncate(int64_t length) {
  if (!any()) return;
  assert(CanTruncate(length));
  Release();
  if (length == length_) return;
  length_ = length;
  const int64_t last = length == 0 ? -1 : length / kTileTokens;
  std::erase_if(pages_, [&](const Page& page) { return page.tile > last; });
}

std::vector<int64_t> StateCache::Positions() const {
  std::vector<int64_t> positions;
  for (const Page& page : pages_) {
    if (page.tile > 0) positions.push_back(page.tile * kTileTokens);
  }
  return positions;
}

std::span<const float> StateCache::StateAt(int64_t position, int64_t layer) const {
  return {State(*Find(position / kTileTokens), layer), static_cast<size_t>(layout().floats)};
}

void StateCache::Restore(int64_t position, std::span<const std::byte> state) {
  assert(any() && length_ == 0 && position > 0 && position % kTileTokens == 0);
  const int64_t bytes = layout().floats * int64_t{sizeof(float)};
  assert(std::ssize(state) == layout().layers * bytes);
  Release();
  std::vector<Page> pages(1);
  pages[0].tile = position / kTileTokens;
  pool_->Take({&pages[0].state, 1}, {});
  for (int64_t layer = 0; layer < layout().layers; ++layer) {
    std::memcpy(State(pages[0], layer), state.data() + layer * bytes, bytes);
  }
  pages_ = std::move(pages);
  length_ = position;
}

}  // namespace godwit
