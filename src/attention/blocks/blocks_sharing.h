// SharedChoices: choices of blocks that are shared by tokens up to the next multiple of token_step,
// and by layer_step layers that choose.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "attention/blocks/blocks_geometry.h"
#include "attention/blocks/chosen_blocks.h"
#include "attention/blocks/path_history.h"
#include "attention/core/policy.h"

namespace godwit {

// A row that shares a choice also sees the blocks that have left the window meanwhile: all from
// `local` on.
class SharedChoices {
 public:
  explicit SharedChoices(std::shared_ptr<const BlocksGeometry> geometry);

  // The token that chooses for the one at that position. first_choice: the first token that
  // chooses.
  int64_t ChooserOf(int64_t position, int64_t first_choice) const {
    return std::max(first_choice, position - position % geometry_->spec.token_step);
  }
  // The choice for the row of a run, for which `chooser` chooses. Null: the row must choose in this
  // layer. reader: RunQueries::reader.
  const ChosenBlocks* Find(const RowRun& run, int64_t layer, int64_t reader, int64_t chooser) const;
  // Whether the choice of `chooser` for a text of `length` tokens, or one after it, is remembered.
  bool Remembers(int64_t chooser, int64_t length) const;
  // Remembers the choice of the run's row, where another row or layer shares it.
  void Put(const RowRun& run, int64_t layer, int64_t reader, int64_t local,
           MatrixView<const int32_t> chosen);

  void Keep(int64_t begin, int64_t end) {
    for (auto& choices : choices_) choices.Keep(begin, end);
  }
  void Accept(int64_t length, std::span<const int64_t> path) {
    for (auto& choices : choices_) choices.Accept(length, path);
  }

 private:
  bool shares() const { return geometry_->spec.token_step > 1 || geometry_->spec.layer_step > 1; }
  // Tokens that choose alone hand their choice on to the next layers only, unless a later layer
  // reads the keys of one of these.
  static bool ToNextLayers(const BlocksGeometry& geometry) {
    return geometry.spec.token_step == 1 && geometry.attention.readers.empty();
  }
  // The place of a choice.
  size_t PlaceOf(int64_t layer, int64_t reader) const {
    return ToNextLayers(*geometry_) ? 0 : geometry_->ChooserOf(layer, reader);
  }

  std::shared_ptr<const BlocksGeometry> geometry_;
  // The choices of each chooser, or of the last one to choose.
  std::vector<PathHistory<ChosenBlocks>> choices_;
};

}  // namespace godwit
