// The choice among a few blocks by their keys (choose_by_keys.h), beside those that a row sees
// anyway.
#pragma once

#include <cstdint>

#include "attention/blocks/blocks_geometry.h"
#include "attention/core/policy.h"

namespace godwit {

// Chooses for the row of a run among blocks [choices, blocks] between the beginning and its window,
// all different. chosen [choices, second_block_count] gets those that `top_p` leaves, -1 behind the
// last. Returns the bytes read, none where all may be seen.
int64_t ChooseNamedByKeys(const BlocksGeometry& geometry, const RowRun& run, int64_t layer,
                          const RunQueries& queries, MatrixView<const int32_t> blocks,
                          MatrixView<int32_t> chosen);

// The bytes of the keys of so many blocks of all heads.
int64_t KeyBytes(const BlocksGeometry& geometry, const RowRun& run, int64_t blocks);

}  // namespace godwit
