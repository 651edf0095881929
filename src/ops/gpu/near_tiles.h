// The keys of a row that lie near: the beginning of its text and the tokens before it. A GPU
// attends to them while the host attends to the others, and the states of both are merged
// (gpu_near.h).
//
// The cut is at tiles and depends on the row's position alone, so the bits depend neither on chunks
// nor on the batch. Near tiles have to be shown whole, as far as the row's `Visible` lets it see
// them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "ops/attention.h"
#include "tensor/workspace.h"

namespace godwit::ops {

struct NearTiles {
  int64_t sinks = 0;   // at the beginning of the text
  int64_t window = 0;  // the last ones up to the row's own; 0: nothing is near

  int64_t count() const { return sinks + window; }
  // The first tile of the window of a row at position p.
  int64_t WindowAt(int64_t p) const {
    return std::max<int64_t>(0, p / kernels::kTileTokens + 1 - window);
  }
  bool operator==(const NearTiles&) const = default;
};

// The near tiles of rows that share their last tile: [0, sinks) and [window, end).
struct NearCut {
  int64_t sinks;
  int64_t window;
  int64_t end;

  int64_t count() const { return sinks + end - window; }
};

// The cut of rows with one source, all in one tile. Where `visible` hides a part of the beginning,
// the beginning is left to the host.
NearCut CutNear(const NearTiles& near, const AttentionRows& rows);

// The same rows without their near keys, with memory of the workspace: the host's part.
AttentionRows FarOf(Workspace& workspace, const NearTiles& near, const AttentionRows& rows);

}  // namespace godwit::ops
