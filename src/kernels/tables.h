// The kernel tables of this build, one per instruction set; dispatch.cc lists them.
#pragma once

#include "kernels/kernel_table.h"

namespace godwit::kernels {

extern const KernelTable kScalarTable;
extern const KernelTable kAvx2Table;
extern const KernelTable kAvx512Table;
extern const KernelTable kAvx512VnniTable;
extern const KernelTable kAvx512Bf16Table;

}  // namespace godwit::kernels
