#include "kernels/tables.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/generic/peak-inl.h"
#include "kernels/tiles_amx-inl.h"

namespace godwit::kernels {
namespace {

// TDPBSUD adds sixteen quads to each of 16 x 16 sums; four chains of it hide its latency.
int64_t PeakInt8(int64_t rounds) noexcept {
  const TileShapes shapes(kMostTileRows);
  ZeroSums();
  ZeroTile<4>(), ZeroTile<5>();
  for (int64_t i = 0; i < rounds * kPeakChains; i += 4) {
    AddSignedByUnsigned<0, 4, 5>(), AddSignedByUnsigned<1, 4, 5>();
    AddSignedByUnsigned<2, 4, 5>(), AddSignedByUnsigned<3, 4, 5>();
  }
  return rounds * kPeakChains * 16 * 16 * 64;
}

}  // namespace

constinit const PeakTable kAvx512AmxPeak = {
    .f32 = PeakF32, .bf16 = nullptr, .int8 = PeakInt8, .read = ReadMemory};

}  // namespace godwit::kernels
