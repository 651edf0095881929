#include "generate/draft_tree.h"

#include <algorithm>

namespace godwit {
namespace {

// The least probability at which a draft token is worth looking for.
constexpr double kMinReach = 0.02;

}  // namespace

int64_t DraftShape::ChildrenAt(int64_t depth) const {
  if (fixed.empty()) return children;
  return depth < std::ssize(fixed) ? fixed[depth] : 0;
}

DraftTree::DraftTree(std::vector<std::unique_ptr<DraftSource>> sources, DraftShape shape)
    : shape_(std::move(shape)) {
  for (auto& drafts : sources) {
    const size_t kinds = drafts->Priors().size();
    sources_.push_back(
        {.drafts = std::move(drafts), .worth = {}, .rates = std::vector<HitRate>(kinds)});
  }
}

double DraftTree::ChanceOf(const Claim& claim) const {
  const Source& source = sources_[claim.source];
  const auto kind = static_cast<size_t>(claim.kind);
  return source.rates[kind].Chance(source.drafts->Priors()[kind]);
}

void DraftTree::Expand(std::span<const int32_t> text, int32_t node) {
  const DraftNode parent = nodes_[node];
  const size_t first = nodes_.size();
  for (size_t source = 0; source < sources_.size(); ++source) {
    if (sources_[source].worth.rests()) continue;
    offers_.clear();
    sources_[source].drafts->Offer(text, nodes_, node, offers_);
    for (const DraftOffer& offer : offers_) {
      const Claim claim{static_cast<int32_t>(source), offer.kind};
      size_t child = first;
      while (child < nodes_.size() && nodes_[child].token != offer.token) ++child;
      if (child == nodes_.size()) {
        nodes_.push_back(
            {.token = offer.token, .parent = node, .depth = parent.depth + 1, .reach = 0});
        growth_.push_back({});
      }
      Growth& growth = growth_[child];
      if (growth.claim_count == growth.claims.size()) continue;
      growth.claims[growth.claim_count++] = claim;
      const double chance = ChanceOf(claim);
      if (chance <= growth.chance) continue;
      growth.chance = chance;
      std::swap(growth.claims[0], growth.claims[growth.claim_count - 1]);
    }
  }
  growth_[node].first_child = static_cast<int32_t>(first);
  growth_[node].children = static_cast<int32_t>(nodes_.size() - first);
  double sum = 0;
  for (size_t child = first; child < nodes_.size(); ++child) sum += growth_[child].chance;
  children_.clear();
  for (size_t child = first; child < nodes_.size(); ++child) {
    nodes_[child].reach = parent.reach * growth_[child].chance / std::max(sum, 1.0);
    children_.emplace_back(nodes_[child].reach, -static_cast<int32_t>(child));
  }
  const int64_t most = shape_.ChildrenAt(parent.depth);
  if (std::ssize(children_) > most) {
    std::ranges::sort(children_, std::greater());
    children_.resize(most);
  }
  for (const auto& child : children_) {
    reached_.push_back(child);
    std::ranges::push_heap(reached_);
  }
}

void DraftTree::Grow(std::span<const int32_t> text, const StepCosts& costs,
                     const DraftLimits& limits) {
  nodes_.assign(1, {.token = text.back(), .parent = -1, .depth = 0, .reach = 1});
  growth_.assign(1, {});
  reached_.clear();
  taken_.assign(1, 0);
  Expand(text, 0);

  // The limit is twice the largest measured number of rows; more would be a blind guess.
  const bool none = limits.depth < 1 || costs.Ms(limits.other_rows + 1) == 0;
  const int64_t most =
      none ? 1
           : std::min({limits.rows, shape_.rows, StepCosts::kMaxRows - limits.other_rows,
                       2 * costs.Largest() - limits.other_rows});
  const int64_t deepest = std::min(limits.depth, shape_.depth);
  const bool all = !shape_.fixed.empty();
  const auto tokens_per_ms = [&](double tokens, int64_t rows) {
    return tokens / costs.Ms(limits.other_rows + rows);
  };
  double tokens = 1, best = none ? 0 : tokens_per_ms(tokens, 1);
  size_t pay = 1;
  while (std::ssize(taken_) < most && !reached_.empty()) {
    std::ranges::pop_heap(reached_);
    const auto [reach, node] = reached_.back();
    reached_.pop_back();
    if (reach < kMinReach && !all) break;
    tokens += reach;
    taken_.push_back(-node);
    if (const double rate = tokens_per_ms(tokens, std::ssize(taken_)); rate > best || all) {
      best = rate;
      pay = taken_.size();
    }
    if (nodes_[-node].depth < deepest) Expand(text, -node);
  }
  for (size_t i = 0; i < pay; ++i) growth_[taken_[i]].row = 0;
  tokens_.clear();
  parents_.clear();
  rows_.clear();
  TakeRows(0);
}

// Numbers the rows of a taken node and of the nodes below it, the likeliest child first.
void DraftTree::TakeRows(int32_t node) {
  Growth& growth = growth_[node];
  const int32_t parent = nodes_[node].parent;
  growth.row = std::ssize(rows_);
  tokens_.push_back(nodes_[node].token);
  parents_.push_back(parent < 0 ? -1 : static_cast<int32_t>(growth_[parent].row));
  rows_.push_back(node);
  std::vector<int32_t> children;
  for (int32_t i = 0; i < growth.children; ++i) {
    if (growth_[growth.first_child + i].row == 0) {
      children.push_back(growth.first_child + i);
    }
  }
  std::ranges::stable_sort(children, std::greater(),
                           [&](int32_t child) { return nodes_[child].reach; });
  for (const int32_t child : children) TakeRows(child);
}

std::optional<int64_t> DraftTree::Step(int64_t row, int32_t token) {
  const Growth& growth = growth_[rows_[row]];
  std::optional<int64_t> next;
  for (int32_t i = 0; i < growth.children; ++i) {
    const auto node = static_cast<size_t>(growth.first_child + i);
    const Growth& child = growth_[node];
    const bool hit = nodes_[node].token == token;
    for (size_t c = 0; c < child.claim_count; ++c) {
      const auto [source, kind] = child.claims[c];
      sources_[source].rates[kind].Count(hit);
    }
    if (hit && child.row >= 0) next = child.row;
  }
  return next;
}

size_t DraftTree::SourceOf(int64_t row) const {
  const Growth& growth = growth_[rows_[row]];
  return static_cast<size_t>(growth.claims[0].source);
}

size_t DraftTree::CheapestSourceOf(int64_t row) const {
  const Growth& growth = growth_[rows_[row]];
  const auto claims = std::span(growth.claims).first(growth.claim_count);
  const auto cheapest = std::ranges::min_element(
      claims, {}, [&](const Claim& claim) { return sources_[claim.source].worth.ms_per_step(); });
  return static_cast<size_t>(cheapest->source);
}

}  // namespace godwit
