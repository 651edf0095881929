#include "kernels/attention/attention.h"
#include "kernels/vec/avx512.h"
// after the vector vocabulary
#include "kernels/attention/pairs-inl.h"
#include "kernels/gemm/pairs_native-inl.h"

namespace godwit::kernels {

void avx512_bf16::AttendTileBF16(const AttendTileArgs& args) noexcept {
  kernels::AttendTileBF16<NativePairOperand>(args);
}
void avx512_bf16::AttendTileI8(const AttendTileArgs& args) noexcept {
  kernels::AttendTileI8<NativePairOperand>(args);
}

}  // namespace godwit::kernels
