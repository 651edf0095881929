// DeviceMatrix: a matrix in the memory of a device, which operations compute with and the host does
// not look into.
#pragma once

#include <cstdint>
#include <type_traits>

namespace godwit::cuda {

// Row-major [rows, cols] with `stride` elements from one row to the next.
template <class T>
struct DeviceMatrix {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  operator DeviceMatrix<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, cols, stride};
  }
};

}  // namespace godwit::cuda
