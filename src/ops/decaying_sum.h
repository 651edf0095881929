// The decaying sum, a recurrent layer for tests, which a test can follow by hand:
//   out[t] = decay * out[t - 1] + values[t]
// in every column, on the grid of tiles (state_piece.h). Its state is the sum at a tile's
// beginning; its rows are the values.
#pragma once

#include <cstdint>
#include <span>

#include "ops/exec.h"
#include "ops/state_piece.h"
#include "tensor/view.h"

namespace godwit::ops {

// values, out: [rows, width], those of all pieces. A position n places behind the tile's beginning
// adds up, in this order and with powers of the decay that were multiplied up from 1:
//   decay^(n + 1) * begin, then decay^(n - j) * values[j] for j = 0 to n
void DecayingSum(const Exec& exec, float decay, std::span<const StatePiece> pieces,
                 MatrixView<const float> values, MatrixView<float> out);

}  // namespace godwit::ops
