#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/gemm/groups_tiles-inl.h"

namespace godwit::kernels {

// Fewer rows do not pay for unpacking, and groups of 16 for being stored.
void avx512_amx::GemmGroups(const GroupGemmArgs& args) noexcept {
  const int64_t least = args.format->group < 32 ? 2 * kMostTileRows : kTileRows;
  if (args.rows <= least) return avx512_vnni::GemmGroups(args);
  GemmGroupsByTiles(args);
}

}  // namespace godwit::kernels
