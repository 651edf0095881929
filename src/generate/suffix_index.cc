#include "generate/suffix_index.h"

#include <algorithm>
#include <bit>

namespace godwit {
namespace {

// The most links to follow: chains of frequent tokens are long, and their ends old.
constexpr int kMaxLinks = 64;
// The number of longest matches that need no shorter ones beside them.
constexpr size_t kEnough = 4;

}  // namespace

uint32_t SuffixIndex::Hash(std::span<const int32_t> text, int64_t end, int32_t gram) {
  uint64_t hash = 0;
  for (int64_t i = end - gram; i < end; ++i) {
    hash = (hash ^ static_cast<uint32_t>(text[i])) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return static_cast<uint32_t>(hash >> 16);
}

void SuffixIndex::Link(Chain& chain, std::span<const int32_t> text, int64_t place) {
  int32_t& latest = chain.latest[Hash(text, place + 1, chain.gram) & (chain.latest.size() - 1)];
  chain.before[place] = latest;
  latest = static_cast<int32_t>(place);
}

void SuffixIndex::Extend(std::span<const int32_t> text) {
  const int64_t places = std::max<int64_t>(0, std::ssize(text) - 1);
  if (places < indexed_) indexed_ = 0;
  for (Chain& chain : chains_) {
    chain.before.resize(places, -1);
    int64_t place = indexed_;
    if (chain.latest.size() < static_cast<size_t>(places) || indexed_ == 0) {
      chain.latest.assign(std::bit_ceil(static_cast<size_t>(places + 1024)), -1);
      place = 0;
    }
    for (place = std::max<int64_t>(place, chain.gram - 1); place < places; ++place) {
      Link(chain, text, place);
    }
  }
  indexed_ = places;
}

void SuffixIndex::Find(std::span<const int32_t> text, size_t most,
                       std::vector<Match>& matches) const {
  matches.clear();
  const int64_t end = std::ssize(text);
  const auto same_tokens = [&](int64_t place) {
    int32_t same = 0;
    while (same < kLongest && same <= place && text[place - same] == text[end - 1 - same]) {
      ++same;
    }
    return same;
  };
  for (const Chain& chain : chains_) {
    if (end < chain.gram || chain.latest.empty()) continue;
    int32_t place = chain.latest[Hash(text, end, chain.gram) & (chain.latest.size() - 1)];
    for (int links = 0; place >= 0 && links < kMaxLinks && matches.size() < most; ++links) {
      const int32_t same = same_tokens(place);
      const bool known = std::ranges::find(matches, place, &Match::position) != matches.end();
      if (same >= chain.gram && !known) matches.push_back({place, same});
      place = chain.before[place];
    }
    if (matches.size() >= kEnough) return;
  }
}

}  // namespace godwit
