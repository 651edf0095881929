#include "kernels/packing.h"

#include <cstring>

namespace godwit::kernels {
namespace {

// panel[u][c] = unit u of row c, where a unit is what stands side by side: one element, or a pair
// of bf16. A run of columns that fills a cache line of the panel is done before the next, so that
// the rows being read are few enough to be fetched ahead.
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

// The last element of rows of odd length, in pairs with zero.
void PadLastPair(const void* const rows[kPanelColumns], int64_t k, char* panel) {
  char* pairs = panel + (k - 1) * kPanelColumns * int64_t{sizeof(BF16)};
  std::memset(pairs, 0, 2 * kPanelColumns * sizeof(BF16));
  for (int64_t c = 0; c < kPanelColumns; ++c) {
    const auto* row = static_cast<const char*>(rows[c]);
    if (row == nullptr) continue;
    std::memcpy(pairs + c * 2 * int64_t{sizeof(BF16)}, row + (k - 1) * int64_t{sizeof(BF16)},
                sizeof(BF16));
  }
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
      if (k % 2 != 0) PadLastPair(rows, k, bytes);
      return;
    default:
      return;  // a precondition of packing.h
  }
}

}  // namespace godwit::kernels
