// ObserverQueries: queries of the tokens that observe (BlocksSpec::observation_window), until the
// last of them has come and their common choice is settled.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "attention/blocks/blocks_geometry.h"
#include "attention/blocks/path_history.h"
#include "attention/core/policy.h"
#include "ops/blocks/choose_by_keys.h"

namespace godwit {

class ObserverQueries {
 public:
  // choosers: those whose queries are remembered, the first of BlocksGeometry::choosers.
  ObserverQueries(std::shared_ptr<const BlocksGeometry> geometry, int64_t choosers)
      : geometry_(std::move(geometry)), histories_(static_cast<size_t>(choosers)) {}

  // Remembers the query of the run's token at `position`, of a chooser. q: RunQueries::q.
  void Put(const RowRun& run, size_t chooser, int64_t position, MatrixView<const float> q);
  // The queries of tokens [begin, end) of the run's path, in ascending order; fewer where others
  // were not seen here. Valid until the next call that is not const.
  std::vector<ops::PlacedQuery> Find(const RowRun& run, size_t chooser, int64_t begin,
                                     int64_t end) const;
  // Whether the query of the text's token at `position` is remembered of all choosers.
  bool Remembers(int64_t position) const;

  // Work as those of PathHistory.
  void Keep(int64_t begin, int64_t end) {
    for (auto& history : histories_) history.Keep(begin, end);
  }
  void Accept(int64_t length, std::span<const int64_t> path) {
    for (auto& history : histories_) history.Accept(length, path);
  }

  int64_t bytes() const;
  // The bytes of so many tokens, of all choosers.
  int64_t BytesOf(int64_t tokens) const { return tokens * std::ssize(histories_) * query_bytes(); }

 private:
  using Query = std::vector<float>;  // [heads, head_dim]
  using History = PathHistory<std::shared_ptr<const Query>>;

  int64_t query_bytes() const;

  std::shared_ptr<const BlocksGeometry> geometry_;
  std::vector<History> histories_;  // of each chooser
};

}  // namespace godwit
