#include "kernels/attention/attention.h"
#include "kernels/vec/neon.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/attention/quads-inl.h"
#include "kernels/attention/scores-inl.h"
#include "kernels/gemm/quads_signed-inl.h"

namespace godwit::kernels {

void neon_dot::AttendTileI8I8(const AttendTileArgs& args) noexcept {
  kernels::AttendTileI8I8<VectorProducts<SignedQuadOperand, SignedWeightOperand>>(args);
}
void neon_dot::ScoreTileI8(const ScoreTileArgs& args) noexcept {
  kernels::ScoreTileI8<SignedQuadOperand>(args);
}

}  // namespace godwit::kernels
