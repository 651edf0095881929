#include "quant/scaled_tensor.h"

#include <cassert>

#include "tensor/float_bytes.h"
#include "weights/tensor_rows.h"

namespace godwit::quant {
namespace {

void ReadStored(const MatrixPart& part, int64_t row, std::span<float> out) {
  const TensorInfo& tensor = *part.tensor;
  if (tensor.blocks != nullptr || tensor.row_order != nullptr) {
    assert(part.first == 0 && part.column_step == 1 && part.row_step == part.columns);
    return godwit::ReadRow(tensor, row, out);
  }
  const auto size = static_cast<int64_t>(SizeOf(*tensor.dtype));
  const std::byte* from = tensor.bytes.data() + (part.first + row * part.row_step) * size;
  if (part.column_step == 1) return ReadFloats(*tensor.dtype, from, out);
  for (float& x : out) {
    ReadFloats(*tensor.dtype, from, {&x, 1});
    from += part.column_step * size;
  }
}

}  // namespace

const Scaling& FindScaling(const Scalings& scalings, std::string_view tensor) {
  static const Scaling none;
  const auto found = scalings.find(tensor);
  return found == scalings.end() ? none : found->second;
}

void AddGroup(const SmoothGroup& group, std::span<const float> s, Scalings& scalings) {
  const auto factors_of = [&](const std::vector<int64_t>& channels) {
    std::vector<float> factors;
    for (const int64_t channel : channels) {
      factors.push_back(channel == kNoChannel ? 1.0f : s[channel]);
    }
    return factors;
  };
  for (const DividedTensor& divided : group.divided) {
    scalings[divided.part.name].row_divisors = factors_of(divided.channels);
  }
  for (const LinearTensors* linear : group.linears) {
    for (const MatrixPart& part : PartsOf(*linear)) {
      scalings[part.name].column_factors = factors_of(group.input_channels);
    }
  }
}

void ReadRow(const MatrixPart& part, const Scaling& scaling, int64_t row, std::span<float> out) {
  const std::vector<float>& columns = scaling.column_factors;
  assert(std::ssize(out) == part.columns && (columns.empty() || columns.size() == out.size()));
  ReadStored(part, row, out);
  for (size_t i = 0; i < columns.size(); ++i) out[i] *= columns[i];
  if (!scaling.row_divisors.empty()) {
    const float divisor = scaling.row_divisors[row];
    for (float& x : out) x /= divisor;
  }
  if (scaling.added == 0) return;
  for (float& x : out) x += scaling.added;
}

std::vector<std::byte> ScaledBytes(const MatrixPart& part, const Scaling& scaling) {
  const DType dtype = part.dtype();
  std::vector<float> values(part.columns);
  const size_t row_bytes = values.size() * SizeOf(dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(part.rows) * row_bytes);
  for (int64_t row = 0; row < part.rows; ++row) {
    ReadRow(part, scaling, row, values);
    WriteFloats(values, dtype, bytes.data() + static_cast<size_t>(row) * row_bytes);
  }
  return bytes;
}

}  // namespace godwit::quant
