#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx2.h"
// after the vector vocabulary
#include "kernels/gemm/gemm-inl.h"
#include "kernels/gemm/pairs-inl.h"

namespace godwit::kernels {

void avx2::GemmBF16(const GemmArgs& args) noexcept { Gemm<WidenedPairOperand>(args); }

}  // namespace godwit::kernels
