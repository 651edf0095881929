#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx2.h"
// after the vector vocabulary
#include "kernels/gemm/gemm-inl.h"

namespace godwit::kernels {

void avx2::GemmF16(const GemmArgs& args) noexcept { Gemm<WidenedOperand<F16>>(args); }

}  // namespace godwit::kernels
