#include "weights/transposed_matrix.h"

#include <algorithm>
#include <cstring>

namespace godwit {

Buffer TransposedMatrix(ThreadPool& pool, const TensorInfo& matrix) {
  const auto rows = static_cast<size_t>(matrix.shape[0]),
             cols = static_cast<size_t>(matrix.shape[1]);
  const size_t size = SizeOf(*matrix.dtype);
  Buffer transposed(std::ssize(matrix.bytes));
  // Elements of several columns share a cache line.
  constexpr size_t kColumns = 16;
  pool.Run(static_cast<int64_t>((cols + kColumns - 1) / kColumns), [&](int64_t task, int) {
    const size_t begin = static_cast<size_t>(task) * kColumns;
    const size_t end = std::min(cols, begin + kColumns);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t col = begin; col < end; ++col) {
        std::memcpy(transposed.data() + (col * rows + row) * size,
                    matrix.bytes.data() + (row * cols + col) * size, size);
      }
    }
  });
  return transposed;
}

}  // namespace godwit
