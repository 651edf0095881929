#include "kernels/attention/attention.h"
#include "kernels/vec/neon.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/attention/pairs-inl.h"
#include "kernels/attention/quads-inl.h"
#include "kernels/attention/scores-inl.h"
#include "kernels/gemm/matrices-inl.h"

namespace godwit::kernels {

void neon_i8mm::AttendTileBF16(const AttendTileArgs& args) noexcept {
  kernels::AttendTileBF16<MatrixPairOperand>(args);
}
void neon_i8mm::AttendTileI8(const AttendTileArgs& args) noexcept {
  kernels::AttendTileI8<MatrixPairOperand>(args);
}
void neon_i8mm::AttendTileI8I8(const AttendTileArgs& args) noexcept {
  kernels::AttendTileI8I8<VectorProducts<MatrixQuadOperand, MatrixWeightOperand>>(args);
}
void neon_i8mm::ScoreTileI8(const ScoreTileArgs& args) noexcept {
  kernels::ScoreTileI8<MatrixQuadOperand>(args);
}

}  // namespace godwit::kernels
