#include "attention/blocks/blocks_importance.h"

#include <algorithm>

#include "attention/blocks/chosen_blocks.h"
#include "attention/core/text_cache.h"
#include "ops/blocks/importance.h"

namespace godwit {

int64_t BlocksImportance::FirstObserver(int64_t position) const {
  const int64_t end = (position / stretch() + 1) * stretch();
  return end - std::min(geometry_->spec.observation_window, stretch());
}

void BlocksImportance::Observe(const RowRun& run, int64_t layer, const RunQueries& queries) {
  if (!dynamic() || !geometry_->Chooses(layer) || !geometry_->Leads(layer)) return;
  if (queries.reader > 0) return;  // the index is the layer's, and so are its observers
  for (int64_t p = run.position; p < run.position + run.rows; ++p) {
    if (p < FirstObserver(p)) continue;
    queries_.Put(run, geometry_->LeaderOf(layer), p, queries.q);
    if ((p + 1) % stretch() == 0) Find(run, layer, queries.exec, p + 1);
  }
}

void BlocksImportance::Find(const RowRun& run, int64_t layer, const Exec& exec, int64_t end) {
  const int64_t begin = end - stretch();
  const ops::KvRange dropped = run.cache->dropped();
  if (std::max(begin, dropped.begin) < std::min(end, dropped.end)) return;
  const auto observers = queries_.Find(run, geometry_->LeaderOf(layer), FirstObserver(begin), end);
  if (std::ssize(observers) < end - FirstObserver(begin)) return;  // some were read elsewhere
  const int64_t kv_heads = geometry_->attention.shape.kv_heads, count = representatives();
  const int64_t rows = stretch() / geometry_->spec.block_size * kv_heads;
  Places places(static_cast<size_t>(rows * count));
  run.cache->WillRead(layer, {begin, end});
  ops::FindImportant(exec, geometry_->attention.shape, geometry_->attention.alibi,
                     run.cache->View(layer), geometry_->spec.block_size, observers, begin, end,
                     {places.data(), rows, count, count});
  found_[geometry_->LeaderOf(layer)].Put(end - 1, run.RowAt(end - 1),
                                         std::make_shared<const Places>(std::move(places)));
}

BlocksImportance::Found BlocksImportance::Of(const RowRun& run, int64_t layer, int64_t first,
                                             int64_t last) const {
  Found found;
  if (!dynamic() || first >= last) return found;
  const int64_t blocks = stretch() / geometry_->spec.block_size;
  found.stretch_blocks = blocks;
  found.first = first / blocks * blocks;
  for (int64_t block = found.first; block < last; block += blocks) {
    const int64_t at = (block / blocks + 1) * stretch() - 1;
    const auto* const places = found_[geometry_->LeaderOf(layer)].Find(at, HistoryRowAt(run, at));
    found.places.push_back(places == nullptr ? nullptr : *places);
    found.stretches.push_back(places == nullptr ? std::span<const uint16_t>() : **places);
  }
  return found;
}

void BlocksImportance::Keep(int64_t back, int64_t length) {
  if (!dynamic()) return;
  queries_.Keep(FirstObserver(back), length);
  for (auto& found : found_) found.Keep(0, length);
}

void BlocksImportance::Accept(int64_t length, std::span<const int64_t> path) {
  queries_.Accept(length, path);
  for (auto& found : found_) found.Accept(length, path);
}

int64_t BlocksImportance::RestartPoint(int64_t length) const {
  if (!dynamic()) return length;
  const int64_t first = FirstObserver(length);
  for (int64_t p = first; p < length; ++p) {
    if (!queries_.Remembers(p)) return first;
  }
  return length;
}

int64_t BlocksImportance::places_bytes() const {
  const int64_t blocks = stretch() / geometry_->spec.block_size;
  return blocks * geometry_->attention.shape.kv_heads * representatives() *
         int64_t{sizeof(uint16_t)};
}

int64_t BlocksImportance::bytes() const {
  int64_t bytes = queries_.bytes();
  for (const auto& found : found_) bytes += found.size() * places_bytes();
  return bytes;
}

int64_t BlocksImportance::BytesAt(int64_t position) const {
  if (!dynamic()) return 0;
  int64_t observers = 0;
  const int64_t back = std::max<int64_t>(0, position - TextCache::kMaxRollbackTokens);
  for (int64_t p = FirstObserver(back); p <= position; ++p) {
    observers += p >= FirstObserver(p) ? 1 : 0;
  }
  const int64_t stretches = (position + 1) / stretch();
  return queries_.BytesOf(observers) + std::ssize(found_) * stretches * places_bytes();
}

}  // namespace godwit
