#include "generate/suffix_drafts.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace godwit {
namespace {

constexpr size_t kMaxMatches = 64, kMaxOffers = 8;
constexpr int32_t kLengths = 6, kShares = 4, kCounts = 3;

// Classes of lengths: 1, 2, 3 to 4, 5 to 8, 9 to 16, more.
int32_t LengthClass(int32_t tokens) {
  return std::min<int32_t>(std::bit_width(static_cast<uint32_t>(tokens - 1)), kLengths - 1);
}

int32_t ShareClass(double share) {
  return share < 0.25 ? 0 : share < 0.5 ? 1 : share < 0.9 ? 2 : 3;
}

// Classes of counts: 1, 2 to 3, more.
int32_t CountClass(int32_t count) { return count == 1 ? 0 : count < 4 ? 1 : 2; }

}  // namespace

SuffixDrafts::SuffixDrafts() {
  constexpr double kOfLength[kLengths] = {0.2, 0.35, 0.5, 0.65, 0.8, 0.9};
  constexpr double kOfShare[kShares] = {0.1, 0.35, 0.7, 1};
  for (const double length : kOfLength) {
    for (const double share : kOfShare) {
      priors_.insert(priors_.end(), kCounts, length * share);
    }
  }
}

void SuffixDrafts::Offer(std::span<const int32_t> text, std::span<const DraftNode> tree,
                         int32_t node, std::vector<DraftOffer>& offers) {
  const DraftNode& at = tree[node];
  if (static_cast<size_t>(node) >= matches_.size()) matches_.resize(static_cast<size_t>(node) + 1);
  Matches& matches = matches_[node];
  matches.clear();
  if (at.parent < 0) {
    index_.Find(text, kMaxMatches, matches);
  } else {
    for (const auto [place, tokens] : matches_[at.parent]) {
      const auto next = static_cast<size_t>(place) + 1;
      // No token follows the text's end yet.
      if (next + 1 >= text.size() || text[next] != at.token) continue;
      matches.push_back({place + 1, std::min(tokens + 1, SuffixIndex::kLongest)});
    }
  }
  followers_.clear();
  double total = 0;
  for (const auto [place, tokens] : matches) {
    const int32_t token = text[static_cast<size_t>(place) + 1];
    const double weight = std::exp2(2 * LengthClass(tokens));
    total += weight;
    const auto known = std::ranges::find(followers_, token, &Follower::token);
    if (known == followers_.end()) {
      followers_.push_back({token, tokens, 1, weight});
    } else {
      known->longest = std::max(known->longest, tokens);
      known->weight += weight;
      ++known->count;
    }
  }
  // The sort is stable: among equals the later one comes first.
  std::ranges::stable_sort(followers_, std::greater(), &Follower::weight);
  for (size_t i = 0; i < std::min(followers_.size(), kMaxOffers); ++i) {
    const Follower& follower = followers_[i];
    const int32_t match =
        LengthClass(follower.longest) * kShares + ShareClass(follower.weight / total);
    offers.push_back({follower.token, match * kCounts + CountClass(follower.count)});
  }
}

}  // namespace godwit
