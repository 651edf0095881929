#include "kernels/attention/attention.h"
#include "kernels/gemm/gemm.h"
#include "kernels/tables.h"
#include "kernels/vec/avx512.h"
// The headers below use the vector vocabulary of the one above.
#include "kernels/generic/table-inl.h"

namespace godwit::kernels {

constinit const KernelTable kAvx512Table = MakeTable(
    {avx512::GemmF32, avx512::GemmF16, avx512::GemmBF16, avx512::GemmI8, avx512::GemmGroups},
    {avx512::AttendTileF32, avx512::AttendTileF16, avx512::AttendTileBF16, avx512::AttendTileI8,
     avx512::AttendTileI8I8, avx512::ScoreTileI8});

constinit const KernelTable kAvx512VnniTable =
    MakeTable({avx512::GemmF32, avx512::GemmF16, avx512::GemmBF16, avx512_vnni::GemmI8,
               avx512_vnni::GemmGroups},
              {avx512::AttendTileF32, avx512::AttendTileF16, avx512::AttendTileBF16,
               avx512::AttendTileI8, avx512_vnni::AttendTileI8I8, avx512_vnni::ScoreTileI8});

// Processors with AMX have a second-level cache of 2 MiB, which two threads of a core may share.
constexpr int64_t kAmxProductBytes = 5 << 18;

constinit const KernelTable kAvx512AmxTable =
    MakeTable({avx512::GemmF32, avx512::GemmF16, avx512_amx::GemmBF16, avx512_amx::GemmI8,
               avx512_amx::GemmGroups},
              {avx512::AttendTileF32, avx512::AttendTileF16, avx512_amx::AttendTileBF16,
               avx512_amx::AttendTileI8, avx512_amx::AttendTileI8I8, avx512_vnni::ScoreTileI8,
               avx512_vbmi::ScoreSigns},
              kAmxProductBytes);

constinit const KernelTable kAvx512Bf16Table =
    MakeTable({avx512::GemmF32, avx512::GemmF16, avx512_bf16::GemmBF16, avx512_bf16::GemmI8,
               avx512_bf16::GemmGroups},
              {avx512::AttendTileF32, avx512::AttendTileF16, avx512_bf16::AttendTileBF16,
               avx512_bf16::AttendTileI8, avx512_bf16::AttendTileI8I8, avx512_bf16::ScoreTileI8,
               avx512_vbmi::ScoreSigns});

}  // namespace godwit::kernels
