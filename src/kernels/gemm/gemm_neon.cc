#include "kernels/gemm/gemm.h"
#include "kernels/vec/neon.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/gemm/gemm-inl.h"
#include "kernels/gemm/groups-inl.h"
#include "kernels/gemm/i8-inl.h"
#include "kernels/gemm/i8_widened-inl.h"
#include "kernels/gemm/pairs-inl.h"

namespace godwit::kernels {

void neon::GemmF32(const GemmArgs& args) noexcept { Gemm<WidenedOperand<float>>(args); }

void neon::GemmF16(const GemmArgs& args) noexcept { Gemm<WidenedOperand<F16>>(args); }

void neon::GemmBF16(const GemmArgs& args) noexcept { Gemm<WidenedPairOperand>(args); }

void neon::GemmI8(const GemmArgs& args) noexcept { kernels::GemmI8<WidenedQuadOperand>(args); }

void neon::GemmGroups(const GroupGemmArgs& args) noexcept {
  GemmGroupsBy<WordQuads, WideQuads, CodesByWords>(args);
}

}  // namespace godwit::kernels
