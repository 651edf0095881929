#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/gemm/i8-inl.h"
#include "kernels/gemm/i8_widened-inl.h"

namespace godwit::kernels {

void avx512::GemmI8(const GemmArgs& args) noexcept { kernels::GemmI8<WidenedQuadOperand>(args); }

}  // namespace godwit::kernels
