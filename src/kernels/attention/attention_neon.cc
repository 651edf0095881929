#include "kernels/attention/attention.h"
#include "kernels/vec/neon.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/attention/floats-inl.h"
#include "kernels/attention/pairs-inl.h"
#include "kernels/attention/quads-inl.h"
#include "kernels/attention/scores-inl.h"
#include "kernels/gemm/i8_widened-inl.h"

namespace godwit::kernels {

void neon::AttendTileF32(const AttendTileArgs& args) noexcept { AttendTile<float>(args); }
void neon::AttendTileF16(const AttendTileArgs& args) noexcept { AttendTile<F16>(args); }
void neon::AttendTileBF16(const AttendTileArgs& args) noexcept {
  kernels::AttendTileBF16<WidenedPairOperand>(args);
}
void neon::AttendTileI8(const AttendTileArgs& args) noexcept {
  kernels::AttendTileI8<WidenedPairOperand>(args);
}
void neon::AttendTileI8I8(const AttendTileArgs& args) noexcept {
  kernels::AttendTileI8I8<VectorProducts<WidenedQuadOperand, SmallWeightOperand>>(args);
}
void neon::ScoreTileI8(const ScoreTileArgs& args) noexcept {
  kernels::ScoreTileI8<WidenedQuadOperand>(args);
}

}  // namespace godwit::kernels
