#include "kv/snapshot_tree.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <string_view>

namespace godwit {

namespace {

// The time that a snapshot saves its next user, for each byte. Older use makes a next one less
// likely. Tokens behind many others take longer: at depth kDepth, attention takes as long as the
// rest.
double WorthOf(const SnapshotEntry& entry, std::filesystem::file_time_type now) {
  constexpr double kDepth = 16384;
  const SnapshotInfo& info = *entry.info;
  const double middle = static_cast<double>(info.begin + info.end()) / 2;
  const double cost = static_cast<double>(info.tokens.size()) * (1 + middle / kDepth);
  const double age_s = std::chrono::duration<double>(now - entry.used).count();
  return cost / static_cast<double>(entry.all_bytes()) / std::max(1.0, age_s);
}

}  // namespace

int64_t SnapshotEntry::all_bytes() const {
  int64_t all = bytes;
  for (const auto& [tag, index_bytes] : indexes) all += index_bytes;
  return all;
}

int64_t SnapshotTree::bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, entry] : entries) bytes += entry.all_bytes();
  return bytes;
}

void SnapshotTree::Link() {
  children_.clear();
  for (auto& [name, entry] : entries) {
    entry.reachable = false;
    children_[entry.info->parent].push_back(name);
  }
  std::vector<std::string> open = children_[""];
  while (!open.empty()) {
    SnapshotEntry& entry = entries.at(open.back());
    open.pop_back();
    entry.reachable = true;
    if (Forgets(*entry.info)) continue;
    for (const std::string& child : ChildrenOf(entry.name)) {
      const SnapshotInfo& info = *entries.at(child).info;
      const bool follows = info.begin > entry.info->begin && info.begin <= entry.info->end() &&
                           info.facts == entry.info->facts;
      if (follows) open.push_back(child);
    }
  }
}

std::span<const std::string> SnapshotTree::ChildrenOf(const std::string& name) const {
  const auto children = children_.find(name);
  return children == children_.end() ? std::span<const std::string>() : children->second;
}

const SnapshotEntry* SnapshotTree::ParentOf(const SnapshotEntry& entry) const {
  const auto parent = entries.find(entry.info->parent);
  return parent == entries.end() ? nullptr : &parent->second;
}

std::vector<SnapshotPiece> SnapshotTree::Find(const SnapshotFacts& facts,
                                              std::span<const int32_t> tokens) const {
  const SnapshotEntry* best = nullptr;
  int64_t most = 0;
  std::vector<const SnapshotEntry*> open;
  const auto follow = [&](const std::string& name, int64_t alike) {
    const SnapshotEntry& entry = entries.at(name);
    if (entry.reachable && entry.info->begin <= alike && entry.info->facts == facts) {
      open.push_back(&entry);
    }
  };
  for (const std::string& name : ChildrenOf("")) follow(name, 0);
  while (!open.empty()) {
    const SnapshotEntry& entry = *open.back();
    open.pop_back();
    const SnapshotInfo& info = *entry.info;
    const auto rest = tokens.subspan(std::min<int64_t>(info.begin, std::ssize(tokens)));
    const auto differ =
        std::mismatch(info.tokens.begin(), info.tokens.end(), rest.begin(), rest.end());
    const int64_t alike = WholeTiles(info.begin + (differ.first - info.tokens.begin()));
    if (Forgets(info) && alike < info.end()) continue;
    if (alike > most) {
      best = &entry;
      most = alike;
    }
    for (const std::string& child : ChildrenOf(entry.name)) follow(child, alike);
  }
  std::vector<SnapshotPiece> pieces;
  for (int64_t end = most; best != nullptr; best = ParentOf(*best)) {
    pieces.push_back({best->name, end});
    end = best->info->begin;
  }
  std::ranges::reverse(pieces);
  return pieces;
}

// The index of a text that shares the chain's beginning. Their snapshots give the least number of
// tokens that both share.
SnapshotTree::FoundIndex SnapshotTree::FindIndex(std::span<const SnapshotPiece> pieces,
                                                 const std::string& tag) const {
  FoundIndex best;
  for (const auto& [name, entry] : entries) {
    if (!entry.reachable || !entry.indexes.contains(tag)) continue;
    int64_t shared = entry.info->end();
    for (const SnapshotEntry* at = &entry; at != nullptr; at = ParentOf(*at)) {
      const auto piece = std::ranges::find(pieces, at->name, &SnapshotPiece::name);
      if (piece != pieces.end()) {
        shared = std::min(shared, piece->end);
        if (shared > best.tokens) best = {.name = name, .tokens = shared};
        break;
      }
      shared = at->info->begin;
    }
  }
  return best;
}

SnapshotTree::OtherFactsMatch SnapshotTree::FindByOtherFacts(
    const SnapshotFacts& facts, std::span<const int32_t> tokens) const {
  std::set<SnapshotFacts> others;
  for (const auto& [name, entry] : entries) {
    const SnapshotFacts& its = entry.info->facts;
    const bool same = std::ranges::all_of(std::array{"model", "model of", "owner"}, [&](auto fact) {
      return FactNamed(its, fact) == FactNamed(facts, fact);
    });
    if (same && its != facts) others.insert(its);
  }
  OtherFactsMatch best;
  for (const SnapshotFacts& its : others) {
    const auto pieces = Find(its, tokens);
    if (pieces.empty() || pieces.back().end <= best.tokens) continue;
    best = {.tokens = pieces.back().end, .facts = its};
  }
  return best;
}

std::vector<SnapshotEntry> SnapshotTree::InOrder() const {
  std::vector<SnapshotEntry> all;
  std::vector<std::string> open;
  const auto follow = [&](const std::string& name) {
    const auto children = ChildrenOf(name);
    open.insert(open.end(), children.rbegin(), children.rend());
  };
  follow("");
  while (!open.empty()) {
    const SnapshotEntry& entry = entries.at(open.back());
    open.pop_back();
    if (!entry.reachable) continue;
    all.push_back(entry);
    follow(entry.name);
  }
  for (const auto& [name, entry] : entries) {
    if (!entry.reachable) all.push_back(entry);
  }
  return all;
}

const SnapshotEntry* SnapshotTree::EvictionCandidate(std::filesystem::file_time_type now,
                                                     const std::string& keep) const {
  const SnapshotEntry* least = nullptr;
  double worth = 0;
  for (const auto& [name, entry] : entries) {
    const bool leads_on = entry.reachable && !ChildrenOf(name).empty();
    if (leads_on || !entry.pins.empty() || name == keep) continue;
    const double its = entry.reachable ? WorthOf(entry, now) : 0;
    if (least != nullptr && its >= worth) continue;
    least = &entry;
    worth = its;
  }
  return least;
}

}  // namespace godwit
