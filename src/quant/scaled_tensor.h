// Tensors of a checkpoint with factors on their rows and columns, which smoothing changes.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quant/matrix_part.h"
#include "quant/smooth_groups.h"

namespace godwit::quant {

// Element [row, column] becomes element * column_factors[column] / row_divisors[row] + added. A
// vector is a column: each of its elements is a row.
struct Scaling {
  std::vector<float> row_divisors;    // empty: 1
  std::vector<float> column_factors;  // empty: 1
  float added = 0;
};
using Scalings = std::map<std::string, Scaling, std::less<>>;  // tensor name -> its scaling

// The tensor's scaling; one without factors if it has none.
const Scaling& FindScaling(const Scalings& scalings, std::string_view tensor);

// Adds the effect of smoothing a group by `s` [group.channels] to the scalings of its tensors.
void AddGroup(const SmoothGroup& group, std::span<const float> s, Scalings& scalings);

// Reads row `row`, scaled in f32. out: [columns]
void ReadRow(const MatrixPart& part, const Scaling& scaling, int64_t row, std::span<float> out);

// The scaled rows one after another, rounded to the type of the tensor.
std::vector<std::byte> ScaledBytes(const MatrixPart& part, const Scaling& scaling);

}  // namespace godwit::quant
