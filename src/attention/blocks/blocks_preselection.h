// Blocks that the end of a question chooses for all of its answer (preselect_block).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "attention/blocks/blocks_geometry.h"
#include "attention/blocks/chosen_blocks.h"
#include "attention/blocks/observer_queries.h"
#include "attention/blocks/path_history.h"
#include "attention/core/policy.h"

namespace godwit {

class BlocksPreselection {
 public:
  explicit BlocksPreselection(std::shared_ptr<const BlocksGeometry> geometry)
      : geometry_(std::move(geometry)),
        queries_(geometry_, geometry_->choosers),
        chosen_(static_cast<size_t>(geometry_->choosers)) {}

  // Another question chooses anew.
  void SetQuestion(int64_t position, int64_t answer);
  // Remembers the queries of the end of the question, of a layer or reader that chooses for itself.
  void Observe(const RowRun& run, int64_t layer, const RunQueries& queries);

  // Blocks [choices, blocks] among which the row of the run chooses, in its workspace: those of
  // the preselection, and what has left the window since. No rows: it chooses among all blocks.
  // Adds to read_bytes what it read.
  MatrixView<const int32_t> BlocksFor(const RowRun& run, int64_t layer, const RunQueries& queries,
                                      int64_t& read_bytes);

  // As DerivedIndex::RestartPoint.
  int64_t RestartPoint(int64_t length, int64_t answer) const;
  void Keep(int64_t begin, int64_t end) {
    queries_.Keep(begin, end);
    for (auto& chosen : chosen_) chosen.Keep(begin, end);
  }
  void Accept(int64_t length, std::span<const int64_t> path) {
    queries_.Accept(length, path);
    for (auto& chosen : chosen_) chosen.Accept(length, path);
  }

 private:
  // The first token that observes.
  int64_t ObserversBegin() const;
  // Null: there is no choice. Adds to read_bytes what it read.
  const ChosenBlocks* ChosenFor(const RowRun& run, int64_t layer, const RunQueries& queries,
                                int64_t& read_bytes);

  std::shared_ptr<const BlocksGeometry> geometry_;
  int64_t question_begin_ = 0, answer_ = INT64_MAX;
  ObserverQueries queries_;                        // of the end of the question
  std::vector<PathHistory<ChosenBlocks>> chosen_;  // of each chooser, at the question's last token
};

}  // namespace godwit
