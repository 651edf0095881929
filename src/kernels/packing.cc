#include "kernels/packing.h"

#include <cstring>

namespace godwit::kernels {
namespace {

// panel[u][c] = unit u of row c, where a unit is what stands side by side: one element, a pair of
// bf16 or a quad of int8. A run of columns that fills a cache line of the panel is done before the
// next, so that the rows being read are few enough to be fetched ahead.
template <typename Unit>
void Transpose(const void* const rows[kPanelColumns], int64_t units, char* panel) {
  constexpr int64_t kRun = 64 / sizeof(Unit);
  for (int64_t first = 0; first < kPanelColumns; first += kRun) {
    for (int64_t u = 0; u < units; ++u) {
      Unit line[kRun] = {};
      for (int64_t c = 0; c < kRun; ++c) {
        const auto* row = static_cast<const char*>(rows[first + c]);
        if (row != nullptr) std::memcpy(&line[c], row + u * int64_t{sizeof(Unit)}, sizeof(Unit));
      }
      std::memcpy(panel + (u * kPanelColumns + first) * int64_t{sizeof(Unit)}, line, sizeof(line));
    }
  }
}

// The last `bytes` of every row, fewer than a unit, padded with zeros to one.
void PadLastUnit(const void* const rows[kPanelColumns], int64_t unit, int64_t unit_bytes,
                 int64_t bytes, char* panel) {
  if (bytes == 0) return;
  char* out = panel + unit * kPanelColumns * unit_bytes;
  std::memset(out, 0, static_cast<size_t>(kPanelColumns * unit_bytes));
  for (int64_t c = 0; c < kPanelColumns; ++c) {
    const auto* row = static_cast<const char*>(rows[c]);
    if (row == nullptr) continue;
    std::memcpy(out + c * unit_bytes, row + unit * unit_bytes, static_cast<size_t>(bytes));
  }
}

// int8 to int8 + 128, unsigned.
void Add128(char* bytes, int64_t n) {
  for (int64_t i = 0; i < n; ++i) bytes[i] = static_cast<char>(bytes[i] ^ '\x80');
}

}  // namespace

void PackPanel(DType dtype, const void* const rows[kPanelColumns], int64_t k,
               void* panel) noexcept {
  auto* bytes = static_cast<char*>(panel);
  switch (dtype) {
    case DType::kF32:
      return Transpose<uint32_t>(rows, k, bytes);
    case DType::kF16:
      return Transpose<uint16_t>(rows, k, bytes);
    case DType::kBF16:
      Transpose<uint32_t>(rows, k / 2, bytes);
      return PadLastUnit(rows, k / 2, sizeof(uint32_t), k % 2 * int64_t{sizeof(BF16)}, bytes);
    case DType::kI8:
      Transpose<uint32_t>(rows, k / kQuad, bytes);
      PadLastUnit(rows, k / kQuad, kQuad, k % kQuad, bytes);
      return Add128(bytes, PanelBytes(dtype, k));
    default:
      return;  // a precondition of packing.h
  }
}

}  // namespace godwit::kernels
