#include "kernels/attention/attention.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/attention/floats-inl.h"
#include "kernels/attention/pairs-inl.h"
#include "kernels/attention/quads-inl.h"
#include "kernels/attention/scores-inl.h"
#include "kernels/gemm/i8_widened-inl.h"

namespace godwit::kernels {

void avx512::AttendTileF32(const AttendTileArgs& args) noexcept { AttendTile<float>(args); }
void avx512::AttendTileF16(const AttendTileArgs& args) noexcept { AttendTile<F16>(args); }
void avx512::AttendTileBF16(const AttendTileArgs& args) noexcept {
  kernels::AttendTileBF16<WidenedPairOperand>(args);
}
void avx512::AttendTileI8(const AttendTileArgs& args) noexcept {
  kernels::AttendTileI8<WidenedPairOperand>(args);
}
void avx512::AttendTileI8I8(const AttendTileArgs& args) noexcept {
  kernels::AttendTileI8I8<VectorProducts<WidenedQuadOperand, SmallWeightOperand>>(args);
}
void avx512::ScoreTileI8(const ScoreTileArgs& args) noexcept {
  kernels::ScoreTileI8<WidenedQuadOperand>(args);
}

}  // namespace godwit::kernels
