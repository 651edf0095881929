#include "ops/pack_weight.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/dispatch.h"
#include "kernels/packing.h"
#include "ops/quantize.h"
#include "ops/quantize_groups.h"

namespace godwit::ops {
namespace {

using kernels::KernelTable;
using kernels::kPanelColumns;

// A large page (tensor/buffer.cc), and the most bytes of panels in a task.
constexpr int64_t kPageBytes = int64_t{2} << 20;

// Runs pack(first, end) for ranges of panels. Panels smaller than a page, as those of an expert,
// are shared by all threads, too.
void PackPanels(ThreadPool& pool, int64_t panels, int64_t panel_bytes, Buffer& memory,
                const std::function<void(int64_t first, int64_t end)>& pack) {
  // Threads that first touch the same page would each fill it with zeros, and all but one in vain.
  pool.Run((memory.bytes() + kPageBytes - 1) / kPageBytes,
           [&](int64_t page, int /*worker*/) { memory.data()[page * kPageBytes] = std::byte{0}; });
  const int64_t fit = kPageBytes / std::max(int64_t{1}, panel_bytes);
  const int64_t panels_a_task = std::max(int64_t{1}, std::min(fit, panels / pool.threads()));
  pool.Run((panels + panels_a_task - 1) / panels_a_task, [&](int64_t task, int /*worker*/) {
    pack(task * panels_a_task, std::min(panels, (task + 1) * panels_a_task));
  });
}

// Turns rows of any type into floats.
class RowWidener {
 public:
  RowWidener(const KernelTable& kernels, DType from, int64_t inputs)
      : kernels_(kernels), from_(from), inputs_(inputs), aligned_(inputs), wide_(inputs) {}

  // scale: of an I8 row.
  const float* Widen(const void* row, float scale) {
    const auto n = static_cast<size_t>(inputs_);
    if (n == 0) return wide_.data();  // memcpy must not get a null pointer
    switch (from_) {
      case DType::kF32:
        std::memcpy(wide_.data(), row, n * sizeof(float));
        break;
      case DType::kF16:
        std::memcpy(aligned_.data(), row, n * sizeof(uint16_t));
        kernels_.f16_to_f32(reinterpret_cast<const F16*>(aligned_.data()), inputs_, wide_.data());
        break;
      case DType::kI8:
        for (size_t i = 0; i < n; ++i) {
          wide_[i] = scale * static_cast<float>(static_cast<const int8_t*>(row)[i]);
        }
        break;
      default:
        std::memcpy(aligned_.data(), row, n * sizeof(uint16_t));
        kernels_.bf16_to_f32(reinterpret_cast<const BF16*>(aligned_.data()), inputs_, wide_.data());
    }
    return wide_.data();
  }

 private:
  const KernelTable& kernels_;
  DType from_;
  int64_t inputs_;
  std::vector<uint16_t> aligned_;
  std::vector<float> wide_;
};

// Converts the rows of one panel to another storage.
class RowConverter {
 public:
  RowConverter(const KernelTable& kernels, DType from, DType to, int64_t inputs)
      : kernels_(kernels),
        to_(to),
        inputs_(inputs),
        row_bytes_((inputs + kernels::kQuad) * static_cast<int64_t>(SizeOf(to))),
        widener_(kernels, from, inputs),
        rows_(kPanelColumns * row_bytes_) {}

  // Converts row `c` of the panel. *scale: of I8, given or set; null for other types.
  const void* Convert(const void* row, int64_t c, float* scale) {
    const float* x = widener_.Widen(row, scale == nullptr ? 0 : *scale);
    std::byte* out = rows_.data() + c * row_bytes_;
    switch (to_) {
      case DType::kI8:
        *scale = QuantizeRow(kernels_, x, inputs_, reinterpret_cast<int8_t*>(out)).scale;
        break;
      case DType::kBF16:
        kernels_.f32_to_bf16(x, inputs_, reinterpret_cast<BF16*>(out));
        break;
      default:
        assert(to_ == DType::kF32);
        std::memcpy(out, x, static_cast<size_t>(inputs_) * sizeof(float));
    }
    return out;
  }

 private:
  const KernelTable& kernels_;
  DType to_;
  int64_t inputs_, row_bytes_;
  RowWidener widener_;
  std::vector<std::byte> rows_;
};

bool IsF16(float x) { return ToFloat(ToF16(x)) == x; }

}  // namespace

Weight PackWeight(ThreadPool& pool, DType dtype, int64_t outputs, int64_t inputs,
                  const std::function<const void*(int64_t output)>& row, DType storage,
                  std::vector<float> scales, Arena* arena) {
  if (storage == DType::kI8 && inputs > kernels::kMaxDepthI8) {
    Throw(ErrorKind::kUnsupported, "an int8 weight of {} inputs, at most {} are supported", inputs,
          kernels::kMaxDepthI8);
  }
  // Conversions and quantization give the same bits on all instruction sets, so the best one
  // serves.
  const KernelTable& kernels = *kernels::BestIsa().table;
  if (storage == DType::kGrouped) {
    return PackGroups(
        pool, kQuantizedGroups, outputs, inputs,
        [&](int64_t output, kernels::GroupedRow& to, float& factor) {
          const float scale = scales.empty() ? 1 : scales[output];
          RowWidener widener(kernels, dtype, inputs);
          QuantizeGroups(widener.Widen(row(output), scale), to, factor);
        },
        arena);
  }
  const int64_t panels = kernels::PanelCount(outputs);
  const int64_t panel_bytes = kernels::PanelBytes(storage, inputs);
  Weight weight{.dtype = storage,
                .outputs = outputs,
                .inputs = inputs,
                .panels = NewBuffer(arena, panels * panel_bytes),
                .bias = {}};
  const bool convert = storage != dtype;
  assert(dtype == DType::kI8 || scales.empty());
  if (convert && storage == DType::kI8) scales.resize(outputs);
  const auto pack = [&](int64_t panel, RowConverter* converter) {
    const void* rows[kPanelColumns] = {};
    const int64_t first = panel * kPanelColumns;
    const int64_t columns = std::min(kPanelColumns, outputs - first);
    for (int64_t c = 0; c < columns; ++c) {
      rows[c] = row(first + c);
      float* scale = scales.empty() ? nullptr : &scales[first + c];
      if (converter != nullptr) rows[c] = converter->Convert(rows[c], c, scale);
    }
    kernels::PackPanel(storage, rows, inputs, weight.panels.data() + panel * panel_bytes);
  };
  PackPanels(pool, panels, panel_bytes, weight.panels, [&](int64_t first, int64_t end) {
    std::optional<RowConverter> converter;
    if (convert) converter.emplace(kernels, dtype, storage, inputs);
    for (int64_t panel = first; panel < end; ++panel) {
      pack(panel, converter ? &*converter : nullptr);
    }
  });
  if (storage == DType::kI8) weight.scales = std::move(scales);
  return weight;
}

float FactorForF16(std::span<const float> numbers) {
  if (std::ranges::all_of(numbers, IsF16)) return 1;
  float largest = 0;
  for (const float x : numbers) largest = std::max(largest, std::fabs(x));
  constexpr int kLargestExponent = 14;  // F16 rounds some numbers from 2^15 on to infinity
  constexpr int kMinExponent = -126;    // the least of a normal float
  return std::ldexp(1.0f, std::max(std::ilogb(largest) - kLargestExponent, kMinExponent));
}

Weight PackGroups(
    ThreadPool& pool, const GroupFormat& format, int64_t outputs, int64_t inputs,
    const std::function<void(int64_t output, kernels::GroupedRow& row, float& factor)>& fill,
    Arena* arena) {
  assert(IsInUse(format));
  const int64_t panels = kernels::PanelCount(outputs);
  const int64_t panel_bytes = kernels::GroupPanelBytes(format, inputs);
  Weight weight{.dtype = DType::kGrouped,
                .outputs = outputs,
                .inputs = inputs,
                .panels = NewBuffer(arena, panels * panel_bytes),
                .scales = std::vector<float>(outputs, 1.0f),
                .groups = format};
  PackPanels(pool, panels, panel_bytes, weight.panels, [&](int64_t first, int64_t end) {
    kernels::GroupedRow row = kernels::NewGroupedRow(format, inputs);
    for (int64_t i = first * kPanelColumns; i < std::min(outputs, end * kPanelColumns); ++i) {
      fill(i, row, weight.scales[i]);
      kernels::PackColumn(format, row, i % kPanelColumns,
                          weight.panels.data() + i / kPanelColumns * panel_bytes);
    }
  });
  return weight;
}

int64_t PackedBytes(const GroupFormat& format, int64_t outputs, int64_t inputs) {
  return kernels::PanelCount(outputs) * kernels::GroupPanelBytes(format, inputs) +
         outputs * int64_t{sizeof(float)};
}

int64_t PackedBytes(DType storage, int64_t outputs, int64_t inputs) {
  if (storage == DType::kGrouped) return PackedBytes(kQuantizedGroups, outputs, inputs);
  const int64_t scales = storage == DType::kI8 ? outputs * int64_t{sizeof(float)} : 0;
  return kernels::PanelCount(outputs) * kernels::PanelBytes(storage, inputs) + scales;
}

void UnpackRow(const Weight& w, int64_t output, float* out) {
  const int64_t column = output % kPanelColumns;
  if (w.dtype == DType::kGrouped) {
    const int64_t panel_bytes = kernels::GroupPanelBytes(w.groups, w.inputs);
    kernels::UnpackColumn(w.groups, w.panels.data() + output / kPanelColumns * panel_bytes, column,
                          w.inputs, out);
    const float factor = w.scales[output];
    for (int64_t k = 0; k < w.inputs; ++k) out[k] *= factor;
    if (w.input_order.empty()) return;
    const std::vector<float> places(out, out + w.inputs);
    for (size_t k = 0; k < places.size(); ++k) out[w.input_order[k]] = places[k];
    return;
  }
  const int64_t depth = kernels::PanelDepth(w.dtype);
  const std::byte* panel =
      w.panels.data() + output / kPanelColumns * kernels::PanelBytes(w.dtype, w.inputs);
  for (int64_t k = 0; k < w.inputs; ++k) {
    const int64_t i = (k / depth * kPanelColumns + column) * depth + k % depth;
    switch (w.dtype) {
      case DType::kF32:
        out[k] = reinterpret_cast<const float*>(panel)[i];
        break;
      case DType::kF16:
        out[k] = ToFloat(reinterpret_cast<const F16*>(panel)[i]);
        break;
      case DType::kI8: {
        const int integer = std::to_integer<int>(panel[i]) - 128;
        out[k] = w.scales[output] * static_cast<float>(integer);
        break;
      }
      default:
        out[k] = ToFloat(reinterpret_cast<const BF16*>(panel)[i]);
    }
  }
}

}  // namespace godwit::ops
