#include "kernels/attention/attention.h"
#include "kernels/gemm/gemm.h"
#include "kernels/tables.h"
#include "kernels/vec/avx2.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/table-inl.h"

namespace godwit::kernels {

constinit const KernelTable kAvx2Table =
    MakeTable({avx2::GemmF32, avx2::GemmF16, avx2::GemmBF16, avx2::GemmI8, avx2::GemmGroups},
              {avx2::AttendTileF32, avx2::AttendTileF16, avx2::AttendTileBF16, avx2::AttendTileI8,
               avx2::AttendTileI8I8, avx2::ScoreTileI8});

}  // namespace godwit::kernels
