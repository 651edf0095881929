// GpuWeight: the copy of a packed weight in a GPU's memory, and products with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ops/exec.h"
#include "ops/gpu/gpu.h"
#include "tensor/dtype.h"
#include "tensor/group_format.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit::ops {

// The facts of a weight on which its memory depends.
struct GpuWeightShape {
  DType dtype = DType::kBF16;
  GroupFormat groups = {};  // only if grouped
  int64_t outputs = 0;
  int64_t inputs = 0;

  // The bytes of the copy, of which some are for a bias and scales that it may not have.
  int64_t bytes() const;
  // The bytes of the panels, on either side.
  int64_t panel_bytes() const;
};
GpuWeightShape GpuShapeOf(const Weight& w);

// Why GPUs have no product with weights of this type; empty: they have one.
std::string WhyNotOnGpu(DType dtype);
// The same of a weight, whose inputs may be quantized in a way of their own.
std::string WhyNotOnGpu(const Weight& w);

class GpuWeight {
 public:
  // Copies the weight, which has to be one that GPUs multiply with. Throws Error(kMemory) if it
  // does not fit.
  GpuWeight(Gpu& gpu, const Weight& w);
  ~GpuWeight();
  GpuWeight(GpuWeight&& other) noexcept;
  GpuWeight& operator=(GpuWeight&& other) noexcept;

  const GpuWeightShape& shape() const { return shape_; }

  // For the operations of this folder.
  struct Memory;
  const Memory& memory() const { return *memory_; }

 private:
  GpuWeightShape shape_;
  std::unique_ptr<Memory> memory_;
};

// Computes out = x * w^T + bias as ops::Linear does: x [rows, w.inputs], out [rows, w.outputs] or
// the first outputs alone, as many panels' as it has columns. Both are the host's. A row has the
// same bits in any company. Throws Error(kUnsupported) if a row that was quantized held NaN or
// infinity, and Error(kCancelled).
void Linear(const Exec& exec, Gpu& gpu, MatrixView<const float> x, const GpuWeight& w,
            MatrixView<float> out);
// The scratch memory that it takes, for any number of rows.
int64_t GpuLinearScratchBytes(const GpuWeightShape& w);

}  // namespace godwit::ops
