#include "kernels/packing.h"

#include <algorithm>
#include <cstring>

namespace godwit::kernels {
namespace {

using Vec32 = uint32_t __attribute__((vector_size(16)));
using Vec16 = uint16_t __attribute__((vector_size(16)));

Vec32 ZipLow(Vec32 a, Vec32 b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
Vec32 ZipHigh(Vec32 a, Vec32 b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
Vec16 ZipLow(Vec16 a, Vec16 b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
Vec16 ZipHigh(Vec16 a, Vec16 b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

// out[i][j] = rows[j][i] of a square. Zipping the first half of the rows with the second rotates
// the bits of an element's place by one. After log2(N) times half of the bits have passed.
template <class Vec, int N>
void TransposeSquare(const char* const rows[N], char* out, int64_t out_stride) {
  Vec square[N], zipped[N];
  for (int i = 0; i < N; ++i) std::memcpy(&square[i], rows[i], sizeof(Vec));
  for (int done = 1; done < N; done *= 2) {
    for (int i = 0; i < N / 2; ++i) {
      zipped[2 * i] = ZipLow(square[i], square[i + N / 2]);
      zipped[2 * i + 1] = ZipHigh(square[i], square[i + N / 2]);
    }
    for (int i = 0; i < N; ++i) square[i] = zipped[i];
  }
  for (int i = 0; i < N; ++i) std::memcpy(out + i * out_stride, &square[i], sizeof(Vec));
}

// panel[u][c] = unit u of row c, for units in [begin, end). A unit is the elements that lie side by
// side: one element, a pair of bf16 or a quad of int8.
template <typename Unit>
void TransposeUnits(const void* const rows[kPanelColumns], int64_t begin, int64_t end,
                    char* panel) {
  for (int64_t u = begin; u < end; ++u) {
    Unit line[kPanelColumns] = {};
    for (int64_t c = 0; c < kPanelColumns; ++c) {
      const auto* row = static_cast<const char*>(rows[c]);
      if (row != nullptr) std::memcpy(&line[c], row + u * int64_t{sizeof(Unit)}, sizeof(Unit));
    }
    std::memcpy(panel + u * int64_t{sizeof(line)}, line, sizeof(line));
  }
}

// Transposes a cache line of every row before the next one. Rows of a power of two bytes all lie in
// the same few sets of the first-level cache.
template <typename Unit, class Vec>
void Transpose(const void* const rows[kPanelColumns], int64_t units, char* panel) {
  constexpr int kSide = sizeof(Vec) / sizeof(Unit);
  constexpr int64_t kLine = 64 / sizeof(Unit), kStride = kPanelColumns * sizeof(Unit);
  const bool full = std::find(rows, rows + kPanelColumns, nullptr) == rows + kPanelColumns;
  const int64_t whole = full ? units / kLine * kLine : 0;
  for (int64_t first = 0; first < whole; first += kLine) {
    for (int64_t c = 0; c < kPanelColumns; c += kSide) {
      for (int64_t u = first; u < first + kLine; u += kSide) {
        const char* side[kSide];
        for (int i = 0; i < kSide; ++i) {
          side[i] = static_cast<const char*>(rows[c + i]) + u * int64_t{sizeof(Unit)};
        }
        TransposeSquare<Vec, kSide>(side, panel + u * kStride + c * int64_t{sizeof(Unit)}, kStride);
      }
    }
  }
  TransposeUnits<Unit>(rows, whole, units, panel);
}

// Packs the last `bytes` of every row, fewer than a unit, padded with zeros to one unit.
void PadLastUnit(const void* const rows[kPanelColumns], int64_t unit, int64_t unit_bytes,
                 int64_t bytes, char* panel) {
  if (bytes == 0) return;
  char* out = panel + unit * kPanelColumns * unit_bytes;
  std::memset(out, 0, kPanelColumns * unit_bytes);
  for (int64_t c = 0; c < kPanelColumns; ++c) {
    const auto* row = static_cast<const char*>(rows[c]);
    if (row == nullptr) continue;
    std::memcpy(out + c * unit_bytes, row + unit * unit_bytes, bytes);
  }
}

// Turns int8 into int8 + 128, unsigned.
void Add128(char* bytes, int64_t n) {
  for (int64_t i = 0; i < n; ++i) bytes[i] = static_cast<char>(bytes[i] ^ '\x80');
}

}  // namespace

void PackPanel(DType dtype, const void* const rows[kPanelColumns], int64_t k,
               void* panel) noexcept {
  auto* bytes = static_cast<char*>(panel);
  switch (dtype) {
    case DType::kF32:
      return Transpose<uint32_t, Vec32>(rows, k, bytes);
    case DType::kF16:
      return Transpose<uint16_t, Vec16>(rows, k, bytes);
    case DType::kBF16:
      Transpose<uint32_t, Vec32>(rows, k / 2, bytes);
      return PadLastUnit(rows, k / 2, sizeof(uint32_t), k % 2 * int64_t{sizeof(BF16)}, bytes);
    case DType::kI8:
      Transpose<uint32_t, Vec32>(rows, k / kQuad, bytes);
      PadLastUnit(rows, k / kQuad, kQuad, k % kQuad, bytes);
      return Add128(bytes, PanelBytes(dtype, k));
    default:
      return;  // a precondition of packing.h
  }
}

}  // namespace godwit::kernels
