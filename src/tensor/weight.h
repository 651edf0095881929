// Weights as the kernels read them. Made once by the loader, then immutable and shared.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/group_format.h"

namespace godwit {

// Where the scale of a row of an int8 layer's input comes from.
enum class InputScale : uint8_t {
  kPerToken,   // each row has its own
  kPerTensor,  // the rows that are computed together have one: what a row becomes depends on them
  kStatic,     // one for all time, settled beforehand
};

// How the rows x of an int8 layer's input are quantized: x is about scale * (integer - zero point).
struct InputQuantization {
  InputScale kind = InputScale::kPerToken;
  bool symmetric = true;   // there is no zero point
  float scale = 0;         // only if kStatic
  int32_t zero_point = 0;  // likewise, and only if not symmetric
  // Elements of this magnitude or more are multiplied in float; 0: none. Only if kPerToken and
  // symmetric.
  float outlier_threshold = 0;

  bool operator==(const InputQuantization&) const = default;
};

// The matrix of a linear layer, out = x * w^T + bias, packed into the panels of
// kernels/packing.h. Every storage type goes through this one type; ops/linear.cc switches on it.
struct Weight {
  DType dtype = DType::kF32;  // F32, F16, BF16, I8 or grouped
  int64_t outputs = 0;
  int64_t inputs = 0;
  Buffer panels;
  std::vector<float> bias;  // [outputs], or empty

  // Only if I8: w = scale of the output * integer. One scale for a whole tensor stands here for
  // each of its outputs. If grouped, what an output's scales in F16 are multiplied by, or none are
  // here.
  std::vector<float> scales = {};  // [outputs]
  InputQuantization input = {};
  // The sum of each output's weights: a zero point of the input takes so much off the output. The
  // loader takes that of a static zero point off the bias.
  std::vector<float> row_sums = {};  // [outputs], only if the input is not symmetric
  std::string name = {};             // of the module, for messages
  GroupFormat groups = {};           // only if grouped; the panels are those of group_packing.h
  // The order of inputs if grouped, where groups are not of neighbouring inputs (act order). Place
  // i of the panels is input input_order[i] of the rows, [inputs]. Empty: they are.
  std::vector<int32_t> input_order = {};

  // The bytes that a product reads, without the bias.
  int64_t bytes() const {
    return panels.bytes() + static_cast<int64_t>(scales.size() * sizeof(float));
  }
};

// Rows that are looked up, not multiplied: token embeddings [rows, cols].
struct Table {
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  Buffer data;  // row-major, dense
  // Reads rows that are decoded where they lie, as f32; empty: `data` holds them.
  std::function<void(int64_t row, std::span<float> out)> read = {};
};

}  // namespace godwit
