#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/gemm/i8_tiles-inl.h"

namespace godwit::kernels {

// Few rows wait for memory, which VPDPBUSD reads in its order.
void avx512_amx::GemmI8(const GemmArgs& args) noexcept {
  constexpr int64_t kFewestRows = 5;
  if (args.rows < kFewestRows || args.k == 0) return avx512_vnni::GemmI8(args);
  GemmI8ByTiles(args);
}

}  // namespace godwit::kernels
