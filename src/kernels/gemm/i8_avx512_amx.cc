#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/gemm/i8-inl.h"
#include "kernels/gemm/tiles-inl.h"

namespace godwit::kernels {

// One register tile of rows waits for memory, which VPDPBUSD reads in its order: two cost more than
// the bytes.
void avx512_amx::GemmI8(const GemmArgs& args) noexcept {
  if (args.rows <= kTileRows || args.k == 0) return avx512_vnni::GemmI8(args);
  RunPanelsByTiles<SignedByUnsigned, int8_t>(args, [](const auto&... row) { ScaleSums(row...); });
}

}  // namespace godwit::kernels
