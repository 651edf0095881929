// A matrix that somebody else owns. Passed by value; valid as long as its owner says.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <type_traits>

namespace godwit {

// Row-major [rows, cols] with `stride` elements from one row to the next. Three-dimensional data
// such as queries [tokens, heads, head_dim] are rows of heads * head_dim columns.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  T* Row(int64_t i) const { return data + i * stride; }
  std::span<T> RowSpan(int64_t i) const { return {Row(i), static_cast<size_t>(cols)}; }

  MatrixView Rows(int64_t begin, int64_t end) const {
    assert(0 <= begin && begin <= end && end <= rows);
    return {Row(begin), end - begin, cols, stride};
  }
  MatrixView Cols(int64_t begin, int64_t end) const {
    assert(0 <= begin && begin <= end && end <= cols);
    return {data + begin, rows, end - begin, stride};
  }

  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, cols, stride};
  }
};

}  // namespace godwit
