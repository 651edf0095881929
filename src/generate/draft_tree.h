// DraftTree: the tree of draft tokens that a step verifies: of all that the sources offer, as many
// tokens as pay.
//
// It grows where the text is likeliest to come. It is cut where it yields the most expected tokens
// for the time of a step of so many rows. That is Sequoia (arXiv 2402.12374) with measured times.
// The chance of an offer is learned from the model's own choices, also of offers that were not
// taken. A tree without draft tokens therefore costs nothing and learns.
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

// The limits of all trees.
struct DraftShape {
  static constexpr int64_t kMaxRows = 32, kMaxDepth = 24;

  int64_t rows = kMaxRows;  // with the text's last token
  int64_t depth = kMaxDepth;
  int64_t children = INT64_MAX;  // of a node, the likeliest ones
  // The numbers of children of a node at each depth, as trees were published; no deeper nodes. They
  // are taken whether they pay or not. Empty: the tree is cut by what pays.
  std::vector<int64_t> fixed = {};

  int64_t ChildrenAt(int64_t depth) const;
};

// The limits of the next tree.
struct DraftLimits {
  int64_t rows;        // 1 or more
  int64_t depth;       // of its paths behind the text's last token
  int64_t other_rows;  // rows of the step besides
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
  const DraftShape& shape() const { return shape_; }

  // Grows the tree behind the text, whose last token is row 0, by the sources that do not rest.
  void Grow(std::span<const int32_t> text, const StepCosts& costs, const DraftLimits& limits);
  // The rows to be read, depth first: [rows] tokens, and the rows of their parents, -1 for row 0.
  std::span<const int32_t> tokens() const { return tokens_; }
  std::span<const int32_t> parents() const { return parents_; }

  // Finds the row that guessed `token`, which the model chose after `row`; nothing if none did.
  std::optional<int64_t> Step(int64_t row, int32_t token);
  // The source that was believed for a row other than 0. CheapestSourceOf: the source with the
  // least time among those that offered it, which would have sufficed.
  size_t SourceOf(int64_t row) const;
  size_t CheapestSourceOf(int64_t row) const;

 private:
  struct Claim {
    int32_t source;
    int32_t kind;
  };
  // The other facts about a node.
  struct Growth {
    std::array<Claim, 4> claims;  // the best one first
    size_t claim_count = 0;
    double chance = 0;  // probability after its parent
    int32_t first_child = 0;
    int32_t children = 0;
    int64_t row = -1;  // row in the step; -1: not taken
  };

  double ChanceOf(const Claim& claim) const;
  void Expand(std::span<const int32_t> text, int32_t node);
  void TakeRows(int32_t node);

  std::vector<Source> sources_;
  DraftShape shape_;
  std::vector<DraftNode> nodes_;
  std::vector<Growth> growth_;                       // [nodes]
  std::vector<int32_t> taken_;                       // nodes, likeliest first
  std::vector<std::pair<double, int32_t>> reached_;  // a heap of nodes that may be taken
  std::vector<std::pair<double, int32_t>> children_;
  std::vector<DraftOffer> offers_;
  std::vector<int32_t> tokens_, parents_, rows_;  // [rows]; rows_: the node of a row
};

}  // namespace godwit
