// The attention kernels of each instruction set, one file each; table_*.cc collects them.
#pragma once

#include "kernels/kernel_table.h"

namespace godwit::kernels {

namespace avx2 {
void AttendTileF32(const AttendTileArgs& args) noexcept;
void AttendTileF16(const AttendTileArgs& args) noexcept;
void AttendTileBF16(const AttendTileArgs& args) noexcept;
void AttendTileI8(const AttendTileArgs& args) noexcept;
void AttendTileI8I8(const AttendTileArgs& args) noexcept;
void ScoreTileI8(const ScoreTileArgs& args) noexcept;
}  // namespace avx2

namespace avx512 {
void AttendTileF32(const AttendTileArgs& args) noexcept;
void AttendTileF16(const AttendTileArgs& args) noexcept;
void AttendTileBF16(const AttendTileArgs& args) noexcept;
void AttendTileI8(const AttendTileArgs& args) noexcept;
void AttendTileI8I8(const AttendTileArgs& args) noexcept;
void ScoreTileI8(const ScoreTileArgs& args) noexcept;
}  // namespace avx512

namespace avx512_vnni {
void AttendTileI8I8(const AttendTileArgs& args) noexcept;
void ScoreTileI8(const ScoreTileArgs& args) noexcept;
}  // namespace avx512_vnni

namespace avx512_vbmi {
void ScoreSigns(const ScoreSignsArgs& args) noexcept;
}  // namespace avx512_vbmi

namespace avx512_amx {
void AttendTileBF16(const AttendTileArgs& args) noexcept;
void AttendTileI8(const AttendTileArgs& args) noexcept;
void AttendTileI8I8(const AttendTileArgs& args) noexcept;
}  // namespace avx512_amx

namespace avx512_bf16 {
void AttendTileBF16(const AttendTileArgs& args) noexcept;
void AttendTileI8(const AttendTileArgs& args) noexcept;
void AttendTileI8I8(const AttendTileArgs& args) noexcept;
void ScoreTileI8(const ScoreTileArgs& args) noexcept;
}  // namespace avx512_bf16

namespace neon {
void AttendTileF32(const AttendTileArgs& args) noexcept;
void AttendTileF16(const AttendTileArgs& args) noexcept;
void AttendTileBF16(const AttendTileArgs& args) noexcept;
void AttendTileI8(const AttendTileArgs& args) noexcept;
void AttendTileI8I8(const AttendTileArgs& args) noexcept;
void ScoreTileI8(const ScoreTileArgs& args) noexcept;
}  // namespace neon

namespace neon_dot {
void AttendTileI8I8(const AttendTileArgs& args) noexcept;
void ScoreTileI8(const ScoreTileArgs& args) noexcept;
}  // namespace neon_dot

namespace neon_i8mm {
void AttendTileBF16(const AttendTileArgs& args) noexcept;
void AttendTileI8(const AttendTileArgs& args) noexcept;
void AttendTileI8I8(const AttendTileArgs& args) noexcept;
void ScoreTileI8(const ScoreTileArgs& args) noexcept;
}  // namespace neon_i8mm

}  // namespace godwit::kernels
