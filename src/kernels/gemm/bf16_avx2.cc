#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx2.h"
// after the vector vocabulary
#include "kernels/gemm/gemm-inl.h"

namespace godwit::kernels {

void avx2::GemmBF16(const GemmArgs& args) noexcept { Gemm<PairOperand>(args); }

}  // namespace godwit::kernels
