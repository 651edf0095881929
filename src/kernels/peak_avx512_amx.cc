#include "kernels/tables.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/peak-inl.h"
#include "kernels/tiles_amx-inl.h"

namespace godwit::kernels {
namespace {

// An instruction adds sixteen quads or pairs to each of 16 x 16 sums. Four chains of it hide its
// latency.
template <class Product, int64_t kDepth>
int64_t PeakOfTiles(int64_t rounds) noexcept {
  const TileShapes shapes(kMaxTileRows);
  ZeroSums();
  ZeroTile<kRowTile>(), ZeroTile<5>();
  for (int64_t i = 0; i < rounds * kPeakChains; i += 4) {
    Product::template Add<0, 5>(), Product::template Add<1, 5>();
    Product::template Add<2, 5>(), Product::template Add<3, 5>();
  }
  return rounds * kPeakChains * 16 * 16 * kDepth;
}

}  // namespace

constinit const PeakTable kAvx512AmxPeak = {.f32 = PeakF32,
                                            .bf16 = PeakOfTiles<PairByPair, kSectionDepth / 2>,
                                            .int8 = PeakOfTiles<SignedByUnsigned, kSectionDepth>,
                                            .read = ReadMemory};

}  // namespace godwit::kernels
