// The tree of guesses that a step verifies: of all that the sources offer, as many tokens as pay.
//
// It grows where the text is likeliest to come, and is cut where the tokens that it is expected to
// yield, for the time that a step of so many rows takes, are most (Sequoia, arXiv 2402.12374, with
// measured times). How likely an offer is, is learned from the model's own choices, also of offers
// that were not taken up: a tree of no guesses costs nothing and learns.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "generate/draft_source.h"
#include "generate/draft_worth.h"
#include "generate/hit_rate.h"
#include "generate/step_costs.h"

namespace godwit {

// Of all trees.
struct DraftShape {
  static constexpr int64_t kMostRows = 32, kMostDepth = 24;

  int64_t rows = kMostRows;  // with the text's last token
  int64_t depth = kMostDepth;
  int64_t children = INT64_MAX;  // of a node, the likeliest
  // Not empty: so many children of a node of each depth and no more depths, whether they pay or
  // not, as trees were published.
  std::vector<int64_t> fixed = {};

  int64_t ChildrenAt(int64_t depth) const;
};

// Of one more.
struct DraftLimits {
  int64_t rows;        // 1 or more
  int64_t depth;       // of its paths behind the text's last token
  int64_t other_rows;  // that the step has besides
};

class DraftTree {
 public:
  explicit DraftTree(std::vector<std::unique_ptr<DraftSource>> sources, DraftShape shape = {});

  struct Source {
    std::unique_ptr<DraftSource> drafts;
    DraftWorth worth;
    std::vector<HitRate> rates;  // [kinds]
  };
  std::span<Source> sources() { return sources_; }

  // Behind the text, whose last token is row 0; by the sources that do not rest.
  void Grow(std::span<const int32_t> text, const StepCosts& costs, const DraftLimits& limits);
  // The rows to be read, depth first: [rows] tokens, and the rows of their parents, -1 of row 0.
  std::span<const int32_t> tokens() const { return tokens_; }
  std::span<const int32_t> parents() const { return parents_; }

  // After the row the model chose that token. The row that guessed it, if one did.
  std::optional<int64_t> Step(int64_t row, int32_t token);
  // The source that was believed for that row, not of row 0; and of those that offered it, the one
  // that took the least time, without which the others would have done.
  size_t SourceOf(int64_t row) const;
  size_t CheapestSourceOf(int64_t row) const;

 private:
  struct Claim {
    int32_t source;
    int32_t kind;
  };
  // What else is known of a node.
  struct Growth {
    std::array<Claim, 4> claims;  // the best of them first
    size_t claim_count = 0;
    double chance = 0;  // after its parent
    int32_t first_child = 0;
    int32_t children = 0;
    int64_t row = -1;  // in the step; -1: it was not taken up
  };

  double ChanceOf(const Claim& claim) const;
  void Expand(std::span<const int32_t> text, int32_t node);
  void TakeRows(int32_t node);

  std::vector<Source> sources_;
  DraftShape shape_;
  std::vector<DraftNode> nodes_;
  std::vector<Growth> growth_;                       // [nodes]
  std::vector<int32_t> taken_;                       // nodes, likeliest first
  std::vector<std::pair<double, int32_t>> reached_;  // a heap of those that may be taken
  std::vector<std::pair<double, int32_t>> children_;
  std::vector<DraftOffer> offers_;
  std::vector<int32_t> tokens_, parents_, rows_;  // [rows]; of a row its node
};

}  // namespace godwit
