#include "kernels/attention/attention.h"
#include "kernels/first_level_cache.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/attention/pairs-inl.h"
#include "kernels/attention/quads-inl.h"
#include "kernels/attention/scores-inl.h"
#include "kernels/gemm/pairs_native-inl.h"
#include "kernels/gemm/quads_native-inl.h"

namespace godwit::kernels {
namespace {

// Few rows wait for the next tile. It arrives sooner from the first-level cache, if that holds two
// tiles. Many rows compute for long enough, and need that cache for themselves.
constexpr int64_t kFewRows = 12;

bool FetchesNear(int64_t rows) { return rows <= kFewRows && kHoldsNextTile; }

}  // namespace

void avx512_bf16::AttendTileBF16(const AttendTileArgs& args) noexcept {
  if (!FetchesNear(args.rows)) return kernels::AttendTileBF16<NativePairOperand>(args);
  kernels::AttendTileBF16<FetchedNear<NativePairOperand>>(args);
}
void avx512_bf16::AttendTileI8(const AttendTileArgs& args) noexcept {
  kernels::AttendTileI8<NativePairOperand>(args);
}
void avx512_bf16::AttendTileI8I8(const AttendTileArgs& args) noexcept {
  if (!FetchesNear(args.rows)) return avx512_vnni::AttendTileI8I8(args);
  kernels::AttendTileI8I8<
      VectorProducts<FetchedNear<NativeQuadOperand>, FetchedNear<NativeWeightOperand>>>(args);
}
void avx512_bf16::ScoreTileI8(const ScoreTileArgs& args) noexcept {
  if (!kHoldsNextTile) return avx512_vnni::ScoreTileI8(args);
  kernels::ScoreTileI8<FetchedNear<NativeQuadOperand>>(args);
}

}  // namespace godwit::kernels
