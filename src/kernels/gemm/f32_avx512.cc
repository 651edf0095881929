#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/gemm/gemm-inl.h"

namespace godwit::kernels {

void avx512::GemmF32(const GemmArgs& args) noexcept { Gemm<WidenedOperand<float>>(args); }

}  // namespace godwit::kernels
