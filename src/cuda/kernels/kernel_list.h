// All kernels. kernels.cu makes a GPU's function of each, named godwit_ and its name;
// emulated_kernels.cc makes one for the CPU.
#pragma once

#include "cuda/kernels/activate.h"
#include "cuda/kernels/attend_pages.h"
#include "cuda/kernels/attend_tiles.h"
#include "cuda/kernels/embed.h"
#include "cuda/kernels/merge_stretches.h"
#include "cuda/kernels/peak.h"
#include "cuda/kernels/product_bf16.h"
#include "cuda/kernels/product_groups.h"
#include "cuda/kernels/product_int8.h"
#include "cuda/kernels/quantize_rows.h"
#include "cuda/kernels/rms_norm.h"
#include "cuda/kernels/rotate.h"
#include "cuda/kernels/store_rows.h"

#define GODWIT_KERNELS(ENTRY) \
  ENTRY(Activate)             \
  ENTRY(Add)                  \
  ENTRY(AttendPages)          \
  ENTRY(AttendTiles)          \
  ENTRY(Embed)                \
  ENTRY(MergeStretches)       \
  ENTRY(PeakBF16)             \
  ENTRY(PeakInt8)             \
  ENTRY(ProductBF16Few)       \
  ENTRY(ProductBF16Many)      \
  ENTRY(ProductGroupsFew)     \
  ENTRY(ProductGroupsMany)    \
  ENTRY(ProductInt8Few)       \
  ENTRY(ProductInt8Many)      \
  ENTRY(QuantizeRows)         \
  ENTRY(ReadMemory)           \
  ENTRY(RmsNorm)              \
  ENTRY(Rotate)               \
  ENTRY(StoreRows)
