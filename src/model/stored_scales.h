// Data of an int8 checkpoint beside its integers: scales, zero points, the order of rows. Functions
// that look at numbers throw Error(kFormat), which names the tensor and the element.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/weight.h"
#include "weights/quantization_config.h"
#include "weights/weight_source.h"

namespace godwit {

// The scales of a weight. values: all numbers of the tensor.
std::vector<float> WeightScalesOf(const TensorInfo& tensor, Int8Format format,
                                  std::vector<float> values);
// The scale of a static input. values: all numbers of the tensor.
float InputScaleOf(const TensorInfo& tensor, std::span<const float> values);
int32_t ZeroPointOf(const TensorInfo& tensor);
void CheckRowOrder(const TensorInfo& tensor);

// The scale and zero point that cover the static inputs of fused layers, which read the same rows;
// as vLLM.
InputQuantization JoinInputs(std::span<const InputQuantization> parts);

// Sets the quantization of a weight's input. row_sums: [outputs], of the weight's integers, for an
// input with zero points.
void SetInput(const InputQuantization& input, std::vector<float> row_sums, Weight& weight);

}  // namespace godwit
