#include "kernels/attention/attention.h"
#include "kernels/gemm/gemm.h"
#include "kernels/tables.h"
#include "kernels/vec/neon.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/table-inl.h"

namespace godwit::kernels {

constinit const KernelTable kNeonTable =
    MakeTable({neon::GemmF32, neon::GemmF16, neon::GemmBF16, neon::GemmI8, neon::GemmGroups},
              {neon::AttendTileF32, neon::AttendTileF16, neon::AttendTileBF16, neon::AttendTileI8,
               neon::AttendTileI8I8, neon::ScoreTileI8});

constinit const KernelTable kNeonDotTable = MakeTable(
    {neon::GemmF32, neon::GemmF16, neon::GemmBF16, neon_dot::GemmI8, neon_dot::GemmGroups},
    {neon::AttendTileF32, neon::AttendTileF16, neon::AttendTileBF16, neon::AttendTileI8,
     neon_dot::AttendTileI8I8, neon_dot::ScoreTileI8});

constinit const KernelTable kNeonI8mmTable = MakeTable(
    {neon::GemmF32, neon::GemmF16, neon_i8mm::GemmBF16, neon_i8mm::GemmI8, neon_i8mm::GemmGroups},
    {neon::AttendTileF32, neon::AttendTileF16, neon_i8mm::AttendTileBF16, neon_i8mm::AttendTileI8,
     neon_i8mm::AttendTileI8I8, neon_i8mm::ScoreTileI8});

}  // namespace godwit::kernels
