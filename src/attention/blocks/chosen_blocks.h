// Blocks that were chosen at some token of a text, to be remembered for later ones.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/blocks/path_history.h"
#include "attention/core/policy.h"
#include "tensor/view.h"

namespace godwit {

struct ChosenBlocks {
  ChosenBlocks(int64_t first_local, MatrixView<const int32_t> chosen) : local(first_local) {
    for (int64_t i = 0; i < chosen.rows; ++i) {
      lists.emplace_back(chosen.RowSpan(i).begin(), chosen.RowSpan(i).end());
    }
  }

  int64_t local;                            // the block at which the window of that token began
  std::vector<std::vector<int32_t>> lists;  // one for each choice; -1 behind the last
};

// The row under which a PathHistory has the token at a position before the run's or in it.
inline int64_t HistoryRowAt(const RowRun& run, int64_t position) {
  return position < run.cache->length() ? PathHistory<ChosenBlocks>::kOfText : run.RowAt(position);
}

}  // namespace godwit
