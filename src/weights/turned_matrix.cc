#include "weights/turned_matrix.h"

#include <cstring>

namespace godwit {

Buffer Turned(ThreadPool& pool, const TensorInfo& matrix) {
  const auto rows = static_cast<size_t>(matrix.shape[0]),
             cols = static_cast<size_t>(matrix.shape[1]);
  const size_t size = SizeOf(*matrix.dtype);
  Buffer turned(std::ssize(matrix.bytes));
  pool.Run(matrix.shape[1], [&](int64_t col, int /*worker*/) {
    const auto to = static_cast<size_t>(col);
    for (size_t row = 0; row < rows; ++row) {
      std::memcpy(turned.data() + (to * rows + row) * size,
                  matrix.bytes.data() + (row * cols + to) * size, size);
    }
  });
  return turned;
}

}  // namespace godwit
