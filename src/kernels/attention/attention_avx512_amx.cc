#include "kernels/attention/attention.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/attention/pairs_tiles-inl.h"
#include "kernels/attention/quads_tiles-inl.h"

namespace godwit::kernels {

// With fewer rows the tile waits for its softmax and for memory, which VPDPBUSD reads in order.
void avx512_amx::AttendTileI8I8(const AttendTileArgs& args) noexcept {
  if (args.rows < kMaxTileRows) return avx512_vnni::AttendTileI8I8(args);
  kernels::AttendTileI8I8<TileProducts>(args);
}

void avx512_amx::AttendTileBF16(const AttendTileArgs& args) noexcept { AttendBF16ByTiles(args); }
void avx512_amx::AttendTileI8(const AttendTileArgs& args) noexcept { AttendI8ByTiles(args); }

}  // namespace godwit::kernels
