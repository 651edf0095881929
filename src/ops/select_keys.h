// The keys of a text that a model itself chooses for each query, by an index that it was trained
// with (DeepSeek-V3.2, section 2.1, "lightning indexer").
#pragma once

#include <cstdint>
#include <span>

#include "ops/attention.h"
#include "ops/exec.h"
#include "ops/kv_view.h"
#include "tensor/view.h"

namespace godwit::ops {

// A query has a vector and a weight for each of `heads`, and a position has one key. The key's
// score is
//   sum over heads h of (weight_scale * weight[h]) * max(0, scale * (q[h] . key))
// h ascending. A query sees the `best` keys of the highest scores up to its own position; among
// equals the earlier one.
struct KeyIndexShape {
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t best = 0;
  float scale = 1;
  float weight_scale = 1;

  bool operator==(const KeyIndexShape&) const = default;
};

// Neighbouring rows of one text, whose positions see more than `best` keys.
struct IndexQueries {
  KvView keys;                      // one head: the index keys of a layer, those of the rows, too
  MatrixView<const float> q;        // [rows * heads, head_dim], rotated, a row's heads together
  MatrixView<const float> weights;  // [rows, heads]
  int64_t position;                 // of the first row
  int64_t rows() const { return weights.rows; }
};

// The most tiles in which the chosen keys of a row lie, for rows before position `end`.
int64_t MostChosenTiles(const KeyIndexShape& shape, int64_t end);

// Chooses the keys of each row. chosen [rows]: the tiles in which they lie, ascending, in memory of
// parts [rows, MostChosenTiles]. Scores are computed tile by tile, and a row keeps O(best) of them.
// The choice depends neither on threads nor on other rows. A score that is NaN comes first, so that
// it is not hidden. On all cores.
void SelectKeys(const Exec& exec, const KeyIndexShape& shape, const IndexQueries& queries,
                MatrixView<TilePart> parts, std::span<std::span<const TilePart>> chosen);

}  // namespace godwit::ops
