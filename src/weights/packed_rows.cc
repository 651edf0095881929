#include "weights/packed_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "base/error.h"
#include "weights/float_codes_config.h"
#include "weights/tensor_rows.h"
#include "weights/transposed_matrix.h"

namespace godwit {
namespace {

using Layout = PackedFormat::Layout;
using ScaleType = PackedFormat::ScaleType;

constexpr int64_t kWordBytes = 4;

// Places of eight outputs' codes in a word of AWQ, which orders outputs 0, 2, 4, 6, 1, 3, 5, 7.
constexpr std::array<int64_t, 8> kAwqPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

int64_t CodesOfWord(const PackedFormat& format) { return 32 / format.bits; }
int64_t Words(const PackedFormat& format, int64_t codes) {
  return (codes + CodesOfWord(format) - 1) / CodesOfWord(format);
}
int64_t GroupsOf(const PackedFormat& format, int64_t inputs) {
  return format.group == 0 ? 1 : (inputs + format.group - 1) / format.group;
}
// Rows of scales.
int64_t ScaledRows(const PackedFormat& format, int64_t outputs) {
  if (format.group_outputs == 0) return 1;
  return (outputs + format.group_outputs - 1) / format.group_outputs;
}
int Centre(const PackedFormat& format) { return 1 << (format.bits - 1); }

// The code at `place` among neighbours, from low bits to high ones.
uint8_t CodeAt(const PackedFormat& format, const std::byte* codes, int64_t place) {
  if (format.bits == 8) return std::to_integer<uint8_t>(codes[place]);
  return (std::to_integer<uint8_t>(codes[place / 2]) >> (place % 2 * 4)) & 15;
}

// An output's place in the word that it shares with its neighbours.
int64_t PlaceOf(const PackedFormat& format, int64_t output) {
  return format.layout == Layout::kAwq ? kAwqPlaces[output % 8] : output % CodesOfWord(format);
}

int32_t IntegerAt(const TensorInfo& tensor, int64_t i) {
  int32_t value;
  std::memcpy(&value, tensor.bytes.data() + i * kWordBytes, sizeof(value));
  return value;
}

// The codes of n inputs that lie side by side.
void ReadSideBySide(const PackedFormat& format, const std::byte* bytes, std::span<uint8_t> codes) {
  if (format.bits == 8) return void(std::memcpy(codes.data(), bytes, codes.size()));
  const size_t first = format.layout == Layout::kNf4 ? 1 : 0;  // the code of a pair in the low bits
  for (size_t i = 0; i < codes.size() / 2; ++i) {
    const auto pair = std::to_integer<uint8_t>(bytes[i]);
    codes[2 * i + first] = pair & 15;
    codes[2 * i + 1 - first] = pair >> 4;
  }
  if (codes.size() % 2 != 0) codes.back() = std::to_integer<uint8_t>(bytes[codes.size() / 2]) & 15;
}

}  // namespace

PackedShapes ShapesOf(const PackedFormat& format, int64_t outputs, int64_t inputs) {
  const int64_t groups = GroupsOf(format, inputs);
  switch (format.layout) {
    case Layout::kPackQuantized:
      return {.codes = {".weight_packed", {outputs, Words(format, inputs)}},
              .scales = {".weight_scale", {outputs, groups}},
              .zeros = {".weight_zero_point", {Words(format, outputs), groups}},
              .groups = {".weight_g_idx", {inputs}}};
    case Layout::kIntQuantized:
      return {.codes = {".weight", {outputs, inputs}},
              .scales = {".weight_scale", {outputs, groups}},
              .zeros = {},
              .groups = {}};
    case Layout::kGptq:
      return {.codes = {".qweight", {Words(format, inputs), outputs}},
              .scales = {".scales", {groups, outputs}},
              .zeros = {".qzeros", {groups, Words(format, outputs)}},
              .groups = {".g_idx", {inputs}}};
    case Layout::kAwq:
      return {.codes = {".qweight", {inputs, Words(format, outputs)}},
              .scales = {".scales", {groups, outputs}},
              .zeros = {".qzeros", {groups, Words(format, outputs)}},
              .groups = {}};
    case Layout::kNf4:
      return {.codes = {".weight", {outputs * inputs / 2}},
              .scales = {".weight.absmax", {outputs * groups}},
              .zeros = {},
              .groups = {}};
    case Layout::kFloats4:
    case Layout::kFloats8:
      if (format.transposed) {
        return {.codes = {format.codes_suffix, {inputs, outputs}},
                .scales = {format.scales_suffix, {groups, ScaledRows(format, outputs)}},
                .zeros = {},
                .groups = {}};
      }
      return {.codes = {format.codes_suffix, {outputs, inputs * format.bits / 8}},
              .scales = {format.scales_suffix, {ScaledRows(format, outputs), groups}},
              .zeros = {},
              .groups = {}};
  }
  return {};
}

PackedTensors Mxfp4Tensors(const TensorInfo& blocks, const TensorInfo& scales) {
  PackedTensors packed{.format = kMxfp4, .weight = blocks, .codes = blocks, .scales = scales};
  constexpr std::string_view kSuffix = "_blocks";
  std::string& name = packed.weight.name;
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  name += ".weight";
  packed.weight.shape = {scales.shape[0], scales.shape[1] * kMxfp4.group};
  packed.weight.dtype.reset();
  packed.weight.dtype_name = ShortName(kMxfp4);
  return packed;
}

std::vector<int32_t> InputOrder(const TensorInfo& groups, int64_t group) {
  const int64_t inputs = groups.NumElements(), count = inputs / group;
  std::vector<int32_t> order(inputs);
  std::vector<int64_t> found(count);
  for (int64_t i = 0; i < inputs; ++i) {
    const int64_t g = IntegerAt(groups, i);
    if (g < 0 || g >= count) {
      Throw(ErrorKind::kFormat, "tensor {}: element {} is {}, expected one of {} groups",
            groups.name, i, g, count);
    }
    const int64_t place = found[g]++;
    if (place >= group) {
      Throw(ErrorKind::kFormat, "tensor {}: group {} has more than {} inputs", groups.name, g,
            group);
    }
    order[g * group + place] = static_cast<int32_t>(i);
  }
  if (std::ranges::is_sorted(order)) order.clear();
  return order;
}

PackedRows::PackedRows(ThreadPool& pool, const PackedTensors& tensors)
    : tensors_(tensors),
      outputs_(tensors.weight.shape[0]),
      inputs_(tensors.weight.shape[1]),
      groups_(GroupsOf(tensors.format, inputs_)),
      codes_(tensors.codes.bytes.data()) {
  if (tensors.format.outputs_inside()) {
    transposed_ = TransposedMatrix(pool, tensors.codes);
    codes_ = transposed_.data();
  }
  ReadScales();
  if (tensors.zeros) ReadZeros();
  if (tensors.format.layout == Layout::kIntQuantized) CheckIntegers();
  if (tensors.format.layout == Layout::kFloats8) CheckLevels(pool);
}

void PackedRows::CheckLevels(ThreadPool& pool) const {
  const auto levels = LevelsOf(tensors_.format);
  const std::byte* const stored = tensors_.codes.bytes.data();
  pool.Run(outputs_, [&](int64_t row, int /*worker*/) {
    for (int64_t i = row * inputs_; i < (row + 1) * inputs_; ++i) {
      if (!std::isnan(levels[std::to_integer<size_t>(stored[i])])) continue;
      Throw(ErrorKind::kFormat, "tensor {}: element {} is not a number", tensors_.codes.name, i);
    }
  });
}

void PackedRows::CheckIntegers() const {
  const int centre = Centre(tensors_.format);
  for (int64_t i = 0; i < outputs_ * inputs_; ++i) {
    const auto integer = static_cast<int8_t>(codes_[i]);
    if (-centre <= integer && integer < centre) continue;
    Throw(ErrorKind::kFormat, "tensor {}: element {} is {}, expected {} to {}", tensors_.codes.name,
          i, integer, -centre, centre - 1);
  }
}

std::vector<float> PackedRows::StoredScales() const {
  const TensorInfo& tensor = tensors_.scales;
  const ScaleType type = tensors_.format.scale_type;
  std::vector<float> scales;
  if (tensors_.nested) {
    const NestedScales& nested = *tensors_.nested;
    const std::vector<float> levels = ReadAllRows(nested.levels);
    const std::vector<float> outer = ReadAllRows(nested.scales);
    for (const std::byte code : tensor.bytes) {
      const size_t group = scales.size() / static_cast<size_t>(nested.group);
      scales.push_back(levels[std::to_integer<size_t>(code)] * outer[group] + nested.offset);
    }
    return scales;
  }
  if (type == ScaleType::kFloats) return ReadAllRows(tensor);
  if (type == ScaleType::kE4M3) {
    const auto levels = E4M3Levels();
    for (const std::byte code : tensor.bytes) {
      scales.push_back(levels[std::to_integer<size_t>(code)]);
    }
    return scales;
  }
  for (const std::byte exponent : tensor.bytes) {  // E8M0, a float that is all exponent
    constexpr int kNan = 255, kBias = 127;
    const int value = std::to_integer<int>(exponent);
    scales.push_back(value == kNan ? NAN : std::ldexp(1.0f, value - kBias));
  }
  return scales;
}

void PackedRows::ReadScales() {
  const TensorInfo& tensor = tensors_.scales;
  const bool inside = tensors_.format.outputs_inside();
  const std::vector<float> stored = StoredScales();
  for (size_t i = 0; i < stored.size(); ++i) {
    if (!std::isfinite(stored[i])) {
      Throw(ErrorKind::kFormat, "tensor {}: element {} is {}, expected a finite number",
            tensor.name, i, stored[i]);
    }
  }
  const int64_t group_outputs = tensors_.format.group_outputs;
  const int64_t scaled_rows = ScaledRows(tensors_.format, outputs_);
  scales_.resize(outputs_ * groups_);
  for (int64_t output = 0; output < outputs_; ++output) {
    const int64_t row = group_outputs == 0 ? 0 : output / group_outputs;
    for (int64_t group = 0; group < groups_; ++group) {
      scales_[output * groups_ + group] =
          stored[inside ? group * scaled_rows + row : row * groups_ + group];
    }
  }
}

void PackedRows::ReadZeros() {
  const PackedFormat& format = tensors_.format;
  const TensorInfo& tensor = *tensors_.zeros;
  const bool across = format.across();
  const int64_t words = Words(format, outputs_);
  if (format.zeros) zeros_.resize(outputs_ * groups_);
  for (int64_t output = 0; output < outputs_; ++output) {
    for (int64_t group = 0; group < groups_; ++group) {
      const int64_t word = output / CodesOfWord(format);
      const std::byte* bytes =
          tensor.bytes.data() +
          (across ? group * words + word : word * groups_ + group) * kWordBytes;
      const int stored = CodeAt(format, bytes, PlaceOf(format, output));
      const int zero = (stored + (format.zeros_less_1 ? 1 : 0)) & (2 * Centre(format) - 1);
      if (format.zeros) {
        zeros_[output * groups_ + group] = static_cast<uint8_t>(zero);
      } else if (zero != Centre(format)) {
        Throw(ErrorKind::kFormat,
              "tensor {}: group {} of output {} has the zero point {}, expected {}, because "
              "config.json says that weights are symmetric",
              tensor.name, group, output, zero, Centre(format));
      }
    }
  }
}

void PackedRows::ReadStored(int64_t row, std::span<uint8_t> codes) const {
  const PackedFormat& format = tensors_.format;
  if (format.layout == Layout::kIntQuantized) {
    const std::byte* integers = codes_ + row * inputs_;
    for (size_t i = 0; i < codes.size(); ++i) {
      codes[i] = static_cast<uint8_t>(static_cast<int8_t>(integers[i]) + Centre(format));
    }
    return;
  }
  if (format.layout == Layout::kFloats8) {
    std::memcpy(codes.data(), codes_ + row * inputs_, codes.size());
    return;
  }
  if (format.layout != Layout::kAwq) {
    return ReadSideBySide(format, codes_ + row * Words(format, inputs_) * kWordBytes, codes);
  }
  const std::byte* words = codes_ + row / CodesOfWord(format) * inputs_ * kWordBytes;
  const int64_t place = PlaceOf(format, row);
  for (size_t i = 0; i < codes.size(); ++i, words += kWordBytes) {
    codes[i] = CodeAt(format, words, place);
  }
}

void PackedRows::ReadCodes(int64_t row, std::span<uint8_t> codes) const {
  if (tensors_.order.empty()) return ReadStored(row, codes);
  std::vector<uint8_t> stored(codes.size());
  ReadStored(row, stored);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = stored[tensors_.order[i]];
  }
}

void PackedRows::Dequantize(int64_t row, std::span<float> weights) const {
  std::vector<uint8_t> codes(weights.size());
  ReadCodes(row, codes);
  const auto scales = Scales(row);
  const auto zeros = Zeros(row);
  const auto levels = LevelsOf(tensors_.format);
  for (size_t i = 0; i < codes.size(); ++i) {
    const size_t group = i / static_cast<size_t>(this->group());
    const int zero = zeros.empty() ? Centre(tensors_.format) : zeros[group];
    const size_t input = tensors_.order.empty() ? i : static_cast<size_t>(tensors_.order[i]);
    weights[input] = scales[group] * tensors_.factor *
                     (levels.empty() ? static_cast<float>(codes[i] - zero) : levels[codes[i]]);
  }
}

}  // namespace godwit
