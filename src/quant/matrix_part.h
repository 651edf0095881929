// Matrices and vectors of a checkpoint as quantizing writes them: rows of outputs, each matrix a
// tensor of its own. Those of experts may lie in one tensor of all, transposed, gate and up by
// turns.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/model_tensors.h"

namespace godwit::quant {

struct MatrixPart {
  std::string name;          // of the written tensor: "model.layers.0.mlp.up_proj.weight"
  const TensorInfo* tensor;  // the tensor in which it lies: F32, F16, BF16 or blocks
  int64_t rows = 0;
  int64_t columns = 1;  // 1 for a vector
  // The place of element [0, 0] in the tensor, and the steps to the next row and column.
  int64_t first = 0, row_step = 0, column_step = 1;

  std::vector<int64_t> shape() const;
  // The WrittenType of the tensor.
  DType dtype() const;
};

// The type in which numbers of a tensor are written: its own, but BF16 for blocks, which
// safetensors checkpoints do not have.
DType WrittenType(const TensorInfo& tensor);

// A tensor as it lies: a number, a vector, or a matrix [rows, columns].
MatrixPart WholeTensor(const TensorInfo& tensor);

// The weights of a layer, in the order of its outputs; and its biases.
std::vector<MatrixPart> PartsOf(const LinearTensors& linear);
std::vector<MatrixPart> BiasesOf(const LinearTensors& linear);

// The module of a weight: "model.layers.0.mlp.up_proj".
std::string ModuleName(const MatrixPart& weight);

// The matrices that replace tensors of several experts, by the names of these tensors.
std::map<std::string, std::vector<MatrixPart>, std::less<>> UnstackedTensors(
    const ModelTensors& tensors);

}  // namespace godwit::quant
