// The matrix products of each instruction set, one file each; table_*.cc collects them.
#pragma once

#include "kernels/kernel_table.h"

namespace godwit::kernels {

namespace avx2 {
void GemmF32(const GemmArgs& args) noexcept;
void GemmF16(const GemmArgs& args) noexcept;
void GemmBF16(const GemmArgs& args) noexcept;
void GemmI8(const GemmArgs& args) noexcept;
void GemmGroups(const GroupGemmArgs& args) noexcept;
}  // namespace avx2

namespace avx512 {
void GemmF32(const GemmArgs& args) noexcept;
void GemmF16(const GemmArgs& args) noexcept;
void GemmBF16(const GemmArgs& args) noexcept;
void GemmI8(const GemmArgs& args) noexcept;
void GemmGroups(const GroupGemmArgs& args) noexcept;
}  // namespace avx512

namespace avx512_vnni {
void GemmI8(const GemmArgs& args) noexcept;
void GemmGroups(const GroupGemmArgs& args) noexcept;
}  // namespace avx512_vnni

namespace avx512_amx {
void GemmBF16(const GemmArgs& args) noexcept;
void GemmI8(const GemmArgs& args) noexcept;
void GemmGroups(const GroupGemmArgs& args) noexcept;
}  // namespace avx512_amx

namespace avx512_bf16 {
void GemmBF16(const GemmArgs& args) noexcept;
void GemmI8(const GemmArgs& args) noexcept;
void GemmGroups(const GroupGemmArgs& args) noexcept;
}  // namespace avx512_bf16

namespace neon {
void GemmF32(const GemmArgs& args) noexcept;
void GemmF16(const GemmArgs& args) noexcept;
void GemmBF16(const GemmArgs& args) noexcept;
void GemmI8(const GemmArgs& args) noexcept;
void GemmGroups(const GroupGemmArgs& args) noexcept;
}  // namespace neon

namespace neon_dot {
void GemmI8(const GemmArgs& args) noexcept;
void GemmGroups(const GroupGemmArgs& args) noexcept;
}  // namespace neon_dot

namespace neon_i8mm {
void GemmBF16(const GemmArgs& args) noexcept;
void GemmI8(const GemmArgs& args) noexcept;
void GemmGroups(const GroupGemmArgs& args) noexcept;
}  // namespace neon_i8mm

}  // namespace godwit::kernels
