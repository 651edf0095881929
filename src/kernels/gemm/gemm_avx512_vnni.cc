#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/gemm/groups-inl.h"
#include "kernels/gemm/groups_native-inl.h"
#include "kernels/gemm/i8-inl.h"
#include "kernels/gemm/quads_native-inl.h"

namespace godwit::kernels {

void avx512_vnni::GemmI8(const GemmArgs& args) noexcept {
  kernels::GemmI8<NativeQuadOperand>(args);
}

void avx512_vnni::GemmGroups(const GroupGemmArgs& args) noexcept {
  GemmGroupsBy<NativeQuads, NativeQuads, NativeCodesOf>(args);
}

}  // namespace godwit::kernels
