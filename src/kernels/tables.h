// The tables that the files compiled for one instruction set give to the list in dispatch.cc.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/peak.h"

namespace godwit::kernels {

extern const KernelTable kScalarTable, kAvx2Table, kAvx512Table, kAvx512VnniTable, kAvx512Bf16Table,
    kAvx512AmxTable, kNeonTable, kNeonDotTable, kNeonI8mmTable;
extern const PeakTable kScalarPeak, kAvx2Peak, kAvx512Peak, kAvx512VnniPeak, kAvx512Bf16Peak,
    kAvx512AmxPeak, kNeonPeak, kNeonDotPeak, kNeonI8mmPeak;

}  // namespace godwit::kernels
