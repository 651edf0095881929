// BlocksImportance: the tokens that stand for the blocks of a text with
// representative_type=DYNAMIC, those that get most attention.
//
// A text is cut into stretches as long as the window (BlocksSpec::stretch). The last
// observation_window tokens of a stretch share their attention among its tokens up to themselves.
// Each block keeps for each KV head the tokens that get most of it. Tokens of the text alone thus
// settle the representatives, in context, question and answer alike. It happens before any token is
// too far behind the block to see it in its window. With another representative_type the class does
// nothing, and takes no memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "attention/blocks/block_index.h"
#include "attention/blocks/blocks_geometry.h"
#include "attention/blocks/observer_queries.h"
#include "attention/blocks/path_history.h"
#include "attention/core/policy.h"

namespace godwit {

// Does nothing, and takes no memory, with another representative_type.
class BlocksImportance {
 public:
  using Places = std::vector<uint16_t>;  // [blocks of a stretch, kv_heads, representatives]

  // The important tokens of neighbouring stretches, with their memory.
  struct Found {
    std::vector<std::shared_ptr<const Places>> places;
    std::vector<std::span<const uint16_t>> stretches;
    int64_t first = 0;  // block
    int64_t stretch_blocks = 1;

    ops::ImportantTokens View() const {
      return {.stretches = stretches, .first = first, .stretch_blocks = stretch_blocks};
    }
  };

  explicit BlocksImportance(std::shared_ptr<const BlocksGeometry> geometry)
      : geometry_(std::move(geometry)),
        queries_(geometry_, std::ssize(geometry_->leaders)),
        found_(geometry_->leaders.size()) {}

  // Remembers the queries of a run that observe, and finds the important tokens of stretches that
  // end in it.
  void Observe(const RowRun& run, int64_t layer, const RunQueries& queries);

  // The important tokens of blocks [first, last), which have left the window of the run's row. A
  // stretch whose observers this policy did not see, such as a draft's, has none.
  Found Of(const RowRun& run, int64_t layer, int64_t first, int64_t last) const;

  // Forgets everything from `length` on, and what is not needed to go back to `back` or less far.
  void Keep(int64_t back, int64_t length);
  void Accept(int64_t length, std::span<const int64_t> path);
  // The length as DerivedIndex::RestartPoint: not in the middle of observers that are not
  // remembered.
  int64_t RestartPoint(int64_t length) const;

  int64_t bytes() const;
  // The bytes once the token at `position` has been read alone.
  int64_t BytesAt(int64_t position) const;

 private:
  bool dynamic() const {
    return geometry_->spec.representative_type == ops::RepresentativeType::kDynamic;
  }
  int64_t representatives() const { return geometry_->Shape().parts; }
  int64_t stretch() const { return geometry_->spec.stretch(); }
  int64_t FirstObserver(int64_t position) const;  // of the stretch that holds the position
  int64_t places_bytes() const;

  void Find(const RowRun& run, int64_t layer, const Exec& exec, int64_t end);

  std::shared_ptr<const BlocksGeometry> geometry_;
  ObserverQueries queries_;
  // The important tokens that observers found, for each leader, at the last token of the stretch.
  std::vector<PathHistory<std::shared_ptr<const Places>>> found_;
};

}  // namespace godwit
