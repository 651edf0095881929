#include "kernels/gemm/gemm.h"
#include "kernels/vec/avx2.h"
// after the vector vocabulary
#include "kernels/gemm/groups-inl.h"

namespace godwit::kernels {

void avx2::GemmGroups(const GroupGemmArgs& args) noexcept {
  GemmGroupsBy<WordQuads, WideQuads>(args);
}

}  // namespace godwit::kernels
