#include "kernels/gemm/gemm.h"
#include "kernels/vec/neon.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/gemm/groups-inl.h"
#include "kernels/gemm/groups_signed-inl.h"
#include "kernels/gemm/i8-inl.h"
#include "kernels/gemm/quads_signed-inl.h"

namespace godwit::kernels {

void neon_dot::GemmI8(const GemmArgs& args) noexcept { kernels::GemmI8<SignedQuadOperand>(args); }

void neon_dot::GemmGroups(const GroupGemmArgs& args) noexcept {
  GemmGroupsBy<SignedDotQuads, SignedDotQuads, SignedCodesOf>(args);
}

}  // namespace godwit::kernels
