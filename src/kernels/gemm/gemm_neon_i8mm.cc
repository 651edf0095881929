#include "kernels/gemm/gemm.h"
#include "kernels/vec/neon.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/gemm/gemm-inl.h"
#include "kernels/gemm/groups-inl.h"
#include "kernels/gemm/groups_matrices-inl.h"
#include "kernels/gemm/groups_native-inl.h"
#include "kernels/gemm/i8-inl.h"
#include "kernels/gemm/matrices-inl.h"

namespace godwit::kernels {

void neon_i8mm::GemmBF16(const GemmArgs& args) noexcept { Gemm<MatrixPairOperand>(args); }

void neon_i8mm::GemmI8(const GemmArgs& args) noexcept { kernels::GemmI8<MatrixQuadOperand>(args); }

void neon_i8mm::GemmGroups(const GroupGemmArgs& args) noexcept {
  GemmGroupsBy<NativeQuads, NativeQuads, MatrixCodesOf>(args);
}

}  // namespace godwit::kernels
