#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/gemm/gemm-inl.h"
#include "kernels/gemm/groups_tiles-inl.h"
#include "kernels/gemm/i8-inl.h"
#include "kernels/gemm/tiles-inl.h"

namespace godwit::kernels {

void avx512_amx::GemmBF16(const GemmArgs& args) noexcept {
  if (args.k == 0) return avx512::GemmBF16(args);
  RunPanelsByTiles<PairByPair, BF16>(
      args, []<class Write>(const auto&... row) GODWIT_INLINE_LAMBDA { AddBias<Write>(row...); });
}

// A product of one register tile of rows waits for memory, which VPDPBUSD reads in order. Two tiles
// take longer than the bytes.
void avx512_amx::GemmI8(const GemmArgs& args) noexcept {
  if (args.rows <= kTileRows || args.k == 0) return avx512_vnni::GemmI8(args);
  RunPanelsByTiles<SignedByUnsigned, int8_t>(
      args, []<class Write>(const auto&... row) GODWIT_INLINE_LAMBDA { ScaleSums<Write>(row...); });
}

// Tiles pay for unpacking only with more rows, and for storing groups of 16 only with more still.
void avx512_amx::GemmGroups(const GroupGemmArgs& args) noexcept {
  const int64_t least = args.format->group < 32 ? 2 * kMaxTileRows : kTileRows;
  if (args.rows <= least) return avx512_vnni::GemmGroups(args);
  GemmGroupsByTiles(args);
}

}  // namespace godwit::kernels
