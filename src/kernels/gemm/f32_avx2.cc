#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx2.h"
// after the vector vocabulary
#include "kernels/gemm/gemm-inl.h"

namespace godwit::kernels {

void avx2::GemmF32(const GemmArgs& args) noexcept { Gemm<WidenedOperand<float>>(args); }

}  // namespace godwit::kernels
