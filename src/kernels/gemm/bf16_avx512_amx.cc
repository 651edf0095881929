#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/gemm/gemm-inl.h"
#include "kernels/gemm/tiles-inl.h"

namespace godwit::kernels {

void avx512_amx::GemmBF16(const GemmArgs& args) noexcept {
  if (args.k == 0) return avx512::GemmBF16(args);
  RunPanelsByTiles<PairByPair, BF16>(args, [](const auto&... row) { AddBias(row...); });
}

}  // namespace godwit::kernels
