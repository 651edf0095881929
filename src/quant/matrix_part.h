// Matrices and vectors of a checkpoint as quantizing writes them: rows of outputs, each a tensor of
// its own. Those of experts may lie in one tensor of all, the other way, gate and up by turns.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/model_tensors.h"

namespace godwit::quant {

struct MatrixPart {
  std::string name;          // of the tensor that it becomes: "model.layers.0.mlp.up_proj.weight"
  const TensorInfo* tensor;  // F32, F16, BF16 or blocks: in which it lies
  int64_t rows = 0;
  int64_t columns = 1;  // of a vector 1
  // Where element [0, 0] is in the tensor, and how far the next row and column are.
  int64_t first = 0, row_step = 0, column_step = 1;

  std::vector<int64_t> shape() const;
  // As WrittenType has it of the tensor.
  DType dtype() const;
};

// The type in which numbers of a tensor are written: its own, and BF16 of blocks, which checkpoints
// of safetensors do not have.
DType WrittenType(const TensorInfo& tensor);

// A vector, or a matrix [rows, columns], as it lies.
MatrixPart WholeTensor(const TensorInfo& tensor);

// The weights of a layer, in the order of its outputs; and its biases.
std::vector<MatrixPart> PartsOf(const LinearTensors& linear);
std::vector<MatrixPart> BiasesOf(const LinearTensors& linear);

// "model.layers.0.mlp.up_proj" of a weight.
std::string ModuleName(const MatrixPart& weight);

// What the tensors of several experts become, by their names.
std::map<std::string, std::vector<MatrixPart>, std::less<>> UnstackedTensors(
    const ModelTensors& tensors);

}  // namespace godwit::quant
