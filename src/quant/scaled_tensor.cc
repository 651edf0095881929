#include "quant/scaled_tensor.h"

#include <cassert>

#include "tensor/float_bytes.h"

namespace godwit::quant {

const Scaling& FindScaling(const Scalings& scalings, std::string_view tensor) {
  static const Scaling none;
  const auto found = scalings.find(tensor);
  return found == scalings.end() ? none : found->second;
}

void AddGroup(const SmoothGroup& group, std::span<const float> s, Scalings& scalings) {
  const auto factors_of = [&](const std::vector<int64_t>& channels) {
    std::vector<float> factors;
    for (const int64_t channel : channels) {
      factors.push_back(channel == kNoChannel ? 1.0f : s[static_cast<size_t>(channel)]);
    }
    return factors;
  };
  for (const DividedTensor& divided : group.divided) {
    scalings[divided.tensor->name].row_divisors = factors_of(divided.channels);
  }
  for (const LinearTensors* linear : group.linears) {
    for (const TensorInfo* part : linear->parts) {
      scalings[part->name].column_factors = factors_of(group.input_channels);
    }
  }
}

int64_t RowsOf(const TensorInfo& tensor) { return tensor.shape[0]; }
int64_t ColumnsOf(const TensorInfo& tensor) {
  return tensor.shape.size() > 1 ? tensor.shape[1] : 1;
}

void ReadRow(const TensorInfo& tensor, const Scaling& scaling, int64_t row, std::span<float> out) {
  const std::vector<float>& columns = scaling.column_factors;
  assert(std::ssize(out) == ColumnsOf(tensor) && (columns.empty() || columns.size() == out.size()));
  const size_t row_bytes = out.size() * SizeOf(*tensor.dtype);
  ReadFloats(*tensor.dtype, tensor.bytes.data() + static_cast<size_t>(row) * row_bytes, out);
  for (size_t i = 0; i < columns.size(); ++i) out[i] *= columns[i];
  if (scaling.row_divisors.empty()) return;
  const float divisor = scaling.row_divisors[static_cast<size_t>(row)];
  for (float& x : out) x /= divisor;
}

std::vector<std::byte> ScaledBytes(const TensorInfo& tensor, const Scaling& scaling) {
  std::vector<std::byte> bytes(tensor.bytes.size());
  std::vector<float> values(static_cast<size_t>(ColumnsOf(tensor)));
  const size_t row_bytes = values.size() * SizeOf(*tensor.dtype);
  for (int64_t row = 0; row < RowsOf(tensor); ++row) {
    ReadRow(tensor, scaling, row, values);
    WriteFloats(values, *tensor.dtype, bytes.data() + static_cast<size_t>(row) * row_bytes);
  }
  return bytes;
}

}  // namespace godwit::quant
