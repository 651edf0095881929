// The functions that scalar.cc takes from scalar_attention.cc, scalar_groups.cc and
// scalar_weighted_rows.cc.
#pragma once

#include "kernels/kernel_table.h"

namespace godwit::kernels::scalar {

void GemmGroups(const GroupGemmArgs& args) noexcept;
void AttendTileF32(const AttendTileArgs& args) noexcept;
void AttendTileF16(const AttendTileArgs& args) noexcept;
void AttendTileBF16(const AttendTileArgs& args) noexcept;
void AttendTileI8(const AttendTileArgs& args) noexcept;
void AttendTileI8I8(const AttendTileArgs& args) noexcept;
void ValuesOfKeys(const ValuesOfKeysArgs& args) noexcept;
void WidenNibbles(const WidenNibblesArgs& args) noexcept;
void ScoreTileI8(const ScoreTileArgs& args) noexcept;
void ScoreSigns(const ScoreSignsArgs& args) noexcept;
PowerSum SumPowers(const float* x, int64_t n) noexcept;
void AddWeightedRows(const AddWeightedRowsArgs& args) noexcept;
void DotRows(const float* x, const float* const* rows, int64_t count, int64_t n,
             float* out) noexcept;
void DotDecayedRows(const DotDecayedRowsArgs& args) noexcept;
void MergeState(const float* from, int64_t value_dim, float* into) noexcept;
void FinishState(const float* state, int64_t value_dim, float* out) noexcept;

}  // namespace godwit::kernels::scalar
