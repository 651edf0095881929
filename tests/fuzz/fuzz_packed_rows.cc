// Packed layers of every layout whose tensors hold any bytes.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>

#include "tests/fuzz/targets.h"
#include "weights/packed_rows.h"

namespace godwit::fuzz {
namespace {

using Layout = PackedFormat::Layout;
using ScaleType = PackedFormat::ScaleType;

constexpr PackedFormat kFormats[] = {
    {.group = 16, .zeros = true},
    {.bits = 8, .group = 32, .act_order = true},
    {.layout = Layout::kIntQuantized, .group = 32},
    {.layout = Layout::kGptq, .group = 32, .zeros_less_1 = true, .act_order = true},
    {.layout = Layout::kGptq, .bits = 8, .zeros = true},
    {.layout = Layout::kAwq, .group = 16, .zeros = true},
    {.layout = Layout::kNf4, .group = 32},
    {.layout = Layout::kFloats4, .group = 32, .scale_type = ScaleType::kPowers},
    {.layout = Layout::kFloats4, .group = 16, .scale_type = ScaleType::kE4M3},
    {.layout = Layout::kFloats8, .bits = 8},
    {.layout = Layout::kFloats8, .bits = 8, .group_outputs = 0},
    {.layout = Layout::kFloats8, .bits = 8, .group = 20, .group_outputs = 3},
    {.layout = Layout::kFloats8, .bits = 8, .group = 32, .scale_type = ScaleType::kPowers},
    {.layout = Layout::kFloats8, .bits = 8, .group = 20, .group_outputs = 3, .transposed = true},
    {.layout = Layout::kFloats8, .bits = 8, .transposed = true},
};

// Tensors whose bytes are the input's, over and over.
class Tensors {
 public:
  explicit Tensors(std::span<const uint8_t> input) : input_(input) {}

  TensorInfo Next(std::vector<int64_t> shape, DType dtype) {
    const auto elements = static_cast<size_t>(
        std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
    std::vector<std::byte>& bytes = bytes_.emplace_back(elements * SizeOf(dtype));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(input_[at_++ % input_.size()]);
    return {.name = "t", .dtype = dtype, .shape = std::move(shape), .bytes = bytes};
  }

 private:
  const std::span<const uint8_t> input_;
  size_t at_ = 0;
  std::vector<std::vector<std::byte>> bytes_;
};

void Read(const PackedFormat& format, int64_t outputs, int64_t inputs, Tensors& tensors) {
  const PackedShapes shapes = ShapesOf(format, outputs, inputs);
  const bool words = format.across() || format.layout == Layout::kPackQuantized;
  PackedTensors packed{.format = format, .weight = {.name = "t", .shape = {outputs, inputs}}};
  packed.codes = tensors.Next(shapes.codes.shape, words ? DType::kI32 : DType::kU8);
  const bool floats = format.scale_type == ScaleType::kFloats;
  packed.scales = tensors.Next(shapes.scales.shape, floats ? DType::kF16 : DType::kU8);
  if (format.has_zeros()) packed.zeros = tensors.Next(shapes.zeros.shape, DType::kI32);
  if (format.act_order) {
    TensorInfo groups = tensors.Next(shapes.groups.shape, DType::kI32);
    Accepts([&] { packed.order = InputOrder(groups, format.group); });
    Require(packed.order.empty() || std::ssize(packed.order) == inputs, "all inputs are ordered");
  }
  ThreadPool pool(1);
  const PackedRows rows(pool, packed);
  std::vector<float> weights(static_cast<size_t>(inputs));
  for (int64_t row = 0; row < outputs; ++row) {
    rows.Dequantize(row, weights);
    Require(std::ranges::none_of(weights, [](float x) { return std::isnan(x); }),
            "what is accepted is a number");
  }
}

}  // namespace

// The first three bytes are the format and the sizes.
void FuzzPackedRows(std::span<const uint8_t> input) {
  if (input.size() < 4) return;
  const PackedFormat& format = kFormats[input[0] % std::size(kFormats)];
  // Outputs of AWQ share words of eight.
  const int64_t outputs = format.layout == Layout::kAwq ? 8 : 1 + input[1] % 9;
  const int64_t inputs = 32 * (1 + input[2] % 3);
  Tensors tensors(input.subspan(3));
  Accepts([&] { Read(format, outputs, inputs, tensors); });
}

}  // namespace godwit::fuzz
