#include "kernels/first_level_cache.h"
#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/gemm/gemm-inl.h"
#include "kernels/gemm/groups-inl.h"
#include "kernels/gemm/groups_native-inl.h"
#include "kernels/gemm/i8-inl.h"
#include "kernels/gemm/pairs_native-inl.h"
#include "kernels/gemm/quads_native-inl.h"

namespace godwit::kernels {
namespace {

template <Codes kCodes, bool kCentred>
using NearCodesOf = FetchedNear<NativeCodesOf<kCodes, kCentred>>;

}  // namespace

void avx512_bf16::GemmBF16(const GemmArgs& args) noexcept {
  Gemm<FetchedNear<NativePairOperand>>(args);
}

void avx512_bf16::GemmI8(const GemmArgs& args) noexcept {
  if (args.rows == 1 && !kHoldsNextTile) return avx512_vnni::GemmI8(args);
  kernels::GemmI8<FetchedNear<NativeQuadOperand>>(args);
}

void avx512_bf16::GemmGroups(const GroupGemmArgs& args) noexcept {
  GemmGroupsBy<FetchedNear<NativeQuads>, FetchedNear<NativeQuads>, NearCodesOf>(args);
}

}  // namespace godwit::kernels
