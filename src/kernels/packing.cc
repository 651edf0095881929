#include "kernels/packing.h"

#include <cstring>

namespace godwit::kernels {
namespace {

// Both loops walk the panel in its own order, so that writes stream; the 64 rows are read in turn,
// each from its own cache line. kGroup: elements of one column that stand side by side.
template <int64_t kElementBytes, int64_t kGroup>
void Interleave(const void* const rows[kPanelColumns], int64_t k, char* panel) {
  for (int64_t k0 = 0; k0 < k; k0 += kGroup) {
    for (int64_t c = 0; c < kPanelColumns; ++c) {
      for (int64_t g = 0; g < kGroup; ++g) {
        if (rows[c] != nullptr && k0 + g < k) {
          const char* row = static_cast<const char*>(rows[c]);
          std::memcpy(panel, row + (k0 + g) * kElementBytes, kElementBytes);
        } else {
          std::memset(panel, 0, kElementBytes);
        }
        panel += kElementBytes;
      }
    }
  }
}

}  // namespace

void PackPanel(DType dtype, const void* const rows[kPanelColumns], int64_t k,
               void* panel) noexcept {
  switch (dtype) {
    case DType::kF32:
      return Interleave<4, 1>(rows, k, static_cast<char*>(panel));
    case DType::kF16:
      return Interleave<2, 1>(rows, k, static_cast<char*>(panel));
    case DType::kBF16:
      return Interleave<2, 2>(rows, k, static_cast<char*>(panel));
    default:
      return;  // a precondition of packing.h
  }
}

}  // namespace godwit::kernels
