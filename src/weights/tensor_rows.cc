#include "weights/tensor_rows.h"

#include <cassert>

#include "tensor/float_bytes.h"

namespace godwit {
namespace {

int64_t RowsOf(const TensorInfo& tensor) { return tensor.shape.empty() ? 1 : tensor.shape[0]; }

}  // namespace

bool HoldsFloats(const TensorInfo& tensor) {
  return tensor.dtype == DType::kF32 || tensor.dtype == DType::kF16 ||
         tensor.dtype == DType::kBF16 || tensor.blocks != nullptr;
}

const std::byte* RowBytes(const TensorInfo& tensor, int64_t row) {
  const int64_t row_bytes = std::ssize(tensor.bytes) / RowsOf(tensor);
  if (tensor.row_order != nullptr) row = (*tensor.row_order)[row];
  return tensor.bytes.data() + row * row_bytes;
}

void ReadRow(const TensorInfo& tensor, int64_t row, std::span<float> out) {
  assert(HoldsFloats(tensor));
  const std::byte* bytes = RowBytes(tensor, row);
  if (tensor.blocks != nullptr) {
    DequantizeRow(*tensor.blocks, bytes, out);
  } else {
    ReadFloats(*tensor.dtype, bytes, out);
  }
}

std::vector<float> ReadAllRows(const TensorInfo& tensor) {
  std::vector<float> values(tensor.NumElements());
  if (values.empty()) return values;
  const size_t columns = values.size() / static_cast<size_t>(RowsOf(tensor));
  for (int64_t row = 0; row < RowsOf(tensor); ++row) {
    ReadRow(tensor, row, std::span(values).subspan(static_cast<size_t>(row) * columns, columns));
  }
  return values;
}

}  // namespace godwit
