#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/gemm/gemm-inl.h"
#include "kernels/gemm/groups-inl.h"
#include "kernels/gemm/i8-inl.h"
#include "kernels/gemm/i8_widened-inl.h"
#include "kernels/gemm/pairs-inl.h"

namespace godwit::kernels {

void avx512::GemmF32(const GemmArgs& args) noexcept { Gemm<WidenedOperand<float>>(args); }

void avx512::GemmF16(const GemmArgs& args) noexcept { Gemm<WidenedOperand<F16>>(args); }

void avx512::GemmBF16(const GemmArgs& args) noexcept { Gemm<WidenedPairOperand>(args); }

void avx512::GemmI8(const GemmArgs& args) noexcept { kernels::GemmI8<WidenedQuadOperand>(args); }

void avx512::GemmGroups(const GroupGemmArgs& args) noexcept {
  GemmGroupsBy<WordQuads, WideQuads, CodesByWords>(args);
}

}  // namespace godwit::kernels
