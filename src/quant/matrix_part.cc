#include "quant/matrix_part.h"

#include <algorithm>
#include <utility>

namespace godwit::quant {
namespace {

// `whole` holds the rows of all of `linear`.apart.
std::vector<MatrixPart> SplitIntoParts(const LinearTensors& linear, const std::string& ending,
                                       const MatrixPart& whole) {
  const auto count = std::ssize(linear.apart);
  std::vector<MatrixPart> parts;
  for (const std::string& module : linear.apart) {
    MatrixPart part = whole;
    part.name = module + ending;
    part.rows = whole.rows / count;
    part.first = std::ssize(parts) * (linear.alternating ? 1 : part.rows) * whole.row_step;
    if (linear.alternating) part.row_step = count * whole.row_step;
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

std::vector<int64_t> MatrixPart::shape() const {
  return tensor->shape.size() == 1 ? std::vector{rows} : std::vector{rows, columns};
}

DType MatrixPart::dtype() const { return WrittenType(*tensor); }

DType WrittenType(const TensorInfo& tensor) { return tensor.dtype.value_or(DType::kBF16); }

MatrixPart WholeTensor(const TensorInfo& tensor) {
  MatrixPart part{.name = tensor.name, .tensor = &tensor, .rows = 1};
  if (!tensor.shape.empty()) part.rows = tensor.shape[0];
  if (tensor.shape.size() > 1)
    part.columns = tensor.NumElements() / std::max<int64_t>(1, part.rows);
  part.row_step = part.columns;
  return part;
}

std::vector<MatrixPart> PartsOf(const LinearTensors& linear) {
  std::vector<MatrixPart> parts;
  for (const TensorInfo* tensor : linear.parts) parts.push_back(WholeTensor(*tensor));
  if (linear.apart.empty()) return parts;
  MatrixPart& whole = parts.front();
  if (linear.transposed) {
    std::swap(whole.rows, whole.columns);
    std::swap(whole.row_step, whole.column_step);
  }
  return SplitIntoParts(linear, ".weight", whole);
}

std::vector<MatrixPart> BiasesOf(const LinearTensors& linear) {
  std::vector<MatrixPart> biases;
  for (const TensorInfo* tensor : linear.biases) biases.push_back(WholeTensor(*tensor));
  if (linear.apart.empty() || biases.empty()) return biases;
  return SplitIntoParts(linear, ".bias", biases.front());
}

std::string ModuleName(const MatrixPart& weight) {
  return weight.name.substr(0, weight.name.rfind(".weight"));
}

std::map<std::string, std::vector<MatrixPart>, std::less<>> UnstackedTensors(
    const ModelTensors& tensors) {
  std::map<std::string, std::vector<MatrixPart>, std::less<>> unstacked;
  const auto add = [&](std::vector<MatrixPart> parts) {
    for (MatrixPart& part : parts) {
      unstacked[part.tensor->whole].push_back(std::move(part));
    }
  };
  for (const LayerTensors& layer : tensors.layers) {
    for (const MlpTensors& expert : layer.experts) {
      for (const LinearTensors* linear : {&expert.up, &expert.down}) {
        if (linear->apart.empty()) continue;
        add(PartsOf(*linear));
        add(BiasesOf(*linear));
      }
    }
  }
  return unstacked;
}

}  // namespace godwit::quant
