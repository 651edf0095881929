#include "generate/ngram_table_drafts.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/fnv.h"

namespace godwit {

size_t NgramTableDrafts::Hash::operator()(const Ngram& ngram) const {
  return Fnv1a(std::as_bytes(std::span(ngram)));
}

void NgramTableDrafts::Follow(std::span<const int32_t> text) {
  const int64_t end = std::ssize(text) - options_.lag;
  if (end < counted_) {
    counts_.clear();
    best_.clear();
    counted_ = 0;
  }
  for (; counted_ < end; ++counted_) {
    const int64_t begin = counted_ + 1 - options_.n;
    if (begin < 0) continue;
    Ngram ngram{};
    std::ranges::copy(text.subspan(begin, options_.n), ngram.begin());
    Count(ngram);
  }
}

void NgramTableDrafts::Count(const Ngram& ngram) {
  Counts::value_type& counted = *counts_.try_emplace(ngram, 0).first;
  ++counted.second;
  auto& best = best_[ngram.front()];
  auto at = std::ranges::find(best, &counted);
  if (at == best.end()) {
    if (std::ssize(best) == options_.k) {
      if (best.back()->second >= counted.second) return;
      best.pop_back();
    }
    best.push_back(&counted);
    at = best.end() - 1;
  }
  for (; at != best.begin() && (*(at - 1))->second < counted.second; --at) {
    std::iter_swap(at, at - 1);
  }
}

void NgramTableDrafts::Offer(std::span<const int32_t> /*text*/, std::span<const DraftNode> tree,
                             int32_t node, std::vector<DraftOffer>& offers) {
  const int32_t depth = tree[node].depth;
  if (depth + 1 >= options_.n) return;
  Ngram path{};
  for (int32_t at = node; at >= 0; at = tree[at].parent) path[tree[at].depth] = tree[at].token;
  const auto known = best_.find(path.front());
  if (known == best_.end()) return;
  const auto first = offers.size();
  uint32_t rank = 0;
  for (const Counts::value_type* const ngram : known->second) {
    const auto rank_class = std::min<int32_t>(std::bit_width(rank++), kRanks - 1);
    if (!std::equal(path.begin(), path.begin() + depth + 1, ngram->first.begin())) continue;
    const int32_t token = ngram->first[depth + 1];
    const auto offered = std::span(offers).subspan(first);
    if (std::ranges::find(offered, token, &DraftOffer::token) != offered.end()) continue;
    offers.push_back({token, rank_class + (depth > 0 ? kRanks : 0)});
  }
}

}  // namespace godwit
