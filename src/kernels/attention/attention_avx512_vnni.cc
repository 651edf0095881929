#include "kernels/attention/attention.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/attention/quads-inl.h"
#include "kernels/attention/scores-inl.h"
#include "kernels/gemm/quads_native-inl.h"

namespace godwit::kernels {

void avx512_vnni::AttendTileI8I8(const AttendTileArgs& args) noexcept {
  kernels::AttendTileI8I8<VectorProducts<NativeQuadOperand, NativeWeightOperand>>(args);
}
void avx512_vnni::ScoreTileI8(const ScoreTileArgs& args) noexcept {
  kernels::ScoreTileI8<NativeQuadOperand>(args);
}

}  // namespace godwit::kernels
