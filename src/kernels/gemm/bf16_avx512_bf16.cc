#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/gemm/gemm-inl.h"
#include "kernels/gemm/pairs_native-inl.h"

namespace godwit::kernels {

void avx512_bf16::GemmBF16(const GemmArgs& args) noexcept {
  Gemm<FetchedNear<NativePairOperand>>(args);
}

}  // namespace godwit::kernels
