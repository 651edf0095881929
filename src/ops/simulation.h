// What int8 quantization schemes do to a linear layer, simulated in f32: weights and inputs are
// quantized and widened again, and the product is one of floats. For accuracy alone: it is how
// schemes without kernels of their own are measured, and what the int8 kernels are checked against.
//
// Granularity is that of SmoothQuant, table 3.2. Quantization is symmetric, to [-127, 127], with
// absmax / 127 as scale (ops/quantize.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/thread_pool.h"
#include "ops/exec.h"
#include "ops/linear_input.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit::ops {

struct SimulatedScheme {
  std::string_view name;
  std::string_view description;
  // How many outputs share a scale of the weights; 0: all of a tensor.
  int64_t outputs_per_scale;
  // Whether the rows that are multiplied in one call share a scale, or each has its own. What they
  // share depends on how a text is cut into calls, and so does the result.
  bool inputs_share_scale;
  // Input columns that hold an element of this magnitude in one call are multiplied in float, with
  // the weights as they were; 0: none.
  float outlier = 0;
};

inline constexpr SimulatedScheme kSimulatedSchemes[] = {
    {"naive", "a scale for each weight tensor and for all rows of an input", 0, true},
    // SmoothQuant's are for a checkpoint that is smoothed already. Its O2 is then naive.
    {"o1", "a scale for each weight tensor and for each row of an input", 0, false},
    {"o2", "naive, by the name it has for a smoothed model", 0, true},
    {"w8a8", "a scale for each output and for each row, as --weights int8 computes", 1, false},
    // In ZeroQuant the number of groups is a hyperparameter; about 16 outputs are a group there.
    {"zeroquant", "a scale for 16 outputs and for each row", 16, false},
    {"llm-int8", "w8a8 with input columns of 6 or more in float", 1, false, 6.0f},
};

// Throws Error(kInput) that lists the schemes there are.
const SimulatedScheme& FindSimulatedScheme(std::string_view name);

// What stands in a Weight's place when it is simulated.
struct SimulatedWeight {
  SimulatedScheme scheme;
  Weight rounded;  // F32: quantized and widened again; has the bias
  Weight exact;    // F32: for the columns that stay in float, where the scheme has them
};

// Turns `weight`, stored as F32, into one that Linear simulates. part_outputs: of the tensors that
// it was packed of, which have scales of their own.
Weight Simulate(ThreadPool& pool, const SimulatedScheme& scheme,
                std::span<const int64_t> part_outputs, Weight weight);

// For ops::Linear. Inputs that are not finite give NaN.
void SimulatedLinear(const Exec& exec, const LinearInput& x, const SimulatedWeight& w,
                     MatrixView<float> out);

}  // namespace godwit::ops
