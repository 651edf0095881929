#include "kernels/first_level_cache.h"
#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/gemm/i8-inl.h"
#include "kernels/gemm/quads_native-inl.h"

namespace godwit::kernels {

void avx512_bf16::GemmI8(const GemmArgs& args) noexcept {
  if (args.rows == 1 && !kHoldsNextTile) return avx512_vnni::GemmI8(args);
  kernels::GemmI8<FetchedNear<NativeQuadOperand>>(args);
}

}  // namespace godwit::kernels
