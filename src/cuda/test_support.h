// Shared parts of this room's tests: a GPU, memory on it, and matrices with gaps. Only *_test.cc
// files include it.
//
// The GPU is an emulated one. With GODWIT_TEST_GPU=0 in the environment, tests of operations run on
// GPU 0 of the machine.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/cuda_device.h"
#include "cuda/emulated_device.h"
#include "cuda/ops/matrix.h"
#include "kernels/kernel_test_support.h"
#include "kernels/packing.h"

namespace godwit::cuda {

using kernels::Bits;
using kernels::kEpsilon;
using kernels::kInfinity;
using kernels::kNan;
using kernels::RandomFloats;

inline const kernels::KernelTable& Scalar() { return *kernels::AllIsas().back().table; }

// The elements behind each row, NaN on the device.
inline constexpr int64_t kGap = 6;

// The number of the machine's GPU on which tests run; none: they run on an emulated one.
inline std::optional<int> GpuOfTests() {
  const char* const number = std::getenv("GODWIT_TEST_GPU");
  if (number == nullptr) return {};
  return std::atoi(number);
}

// A GPU with a stream.
class TestGpu {
 public:
  // order: of threads, if the GPU is emulated.
  explicit TestGpu(ThreadOrder order) : device_(NewDevice(order)), stream_(*device_) {}

  const Stream& stream() const { return stream_; }

  // Memory for n elements, full of NaN.
  template <class T>
  T* New(int64_t n) {
    memory_.emplace_back(*device_, n * static_cast<int64_t>(sizeof(T)));
    if (GpuOfTests()) {  // an emulated GPU's memory is NaN by itself
      const std::vector<unsigned char> nan(static_cast<size_t>(memory_.back().bytes()), 0xff);
      stream_.CopyIn(nan.data(), memory_.back(), memory_.back().bytes());
      stream_.Synchronize();
    }
    return memory_.back().As<T>();
  }
  // A copy of numbers, which stay as they are until the test is over.
  template <class T>
  T* Put(const std::vector<T>& numbers) {
    T* const place = New<T>(std::ssize(numbers));
    if (!numbers.empty()) {
      stream_.CopyIn(numbers.data(), memory_.back(), memory_.back().bytes());
    }
    return place;
  }
  template <class T>
  std::vector<T> Get(const T* from, int64_t n) {
    std::vector<T> numbers(static_cast<size_t>(n));
    if (n > 0) {
      device_->CopyOut(stream_.id(), reinterpret_cast<DeviceAddress>(from), numbers.data(),
                       n * static_cast<int64_t>(sizeof(T)));
    }
    stream_.Synchronize();
    return numbers;
  }

  template <class T>
  DeviceMatrix<T> NewMatrix(int64_t rows, int64_t cols) {
    const int64_t stride = (cols + 1) / 2 * 2 + kGap;
    return {New<T>(rows * stride), rows, cols, stride};
  }
  // Rows without gaps, from numbers that stay as they are.
  template <class T>
  DeviceMatrix<const T> PutMatrix(const std::vector<T>& numbers, int64_t rows, int64_t cols) {
    return {Put(numbers), rows, cols, cols};
  }
  // The matrix without its gaps, which have to be as they were; `padded` elements belong to a row.
  template <class T>
  std::vector<T> GetMatrix(DeviceMatrix<T> matrix, int64_t padded) {
    const std::vector<T> all = Get(matrix.data, matrix.rows * matrix.stride);
    std::vector<T> rows;
    for (int64_t row = 0; row < matrix.rows; ++row) {
      const auto begin = all.begin() + row * matrix.stride;
      rows.insert(rows.end(), begin, begin + padded);
      const auto* const gap = reinterpret_cast<const unsigned char*>(&*begin + padded);
      for (size_t i = 0; i < sizeof(T) * static_cast<size_t>(matrix.stride - padded); ++i) {
        EXPECT_EQ(gap[i], 0xff) << "behind row " << row;
      }
    }
    return rows;
  }
  template <class T>
  std::vector<T> GetMatrix(DeviceMatrix<T> matrix) {
    return GetMatrix(matrix, matrix.cols);
  }

 private:
  static std::unique_ptr<Device> NewDevice(ThreadOrder order) {
    if (const std::optional<int> gpu = GpuOfTests()) return OpenCudaDevice(*gpu);
    return std::make_unique<EmulatedDevice>(EmulatedOptions{.order = order});
  }

  std::unique_ptr<Device> device_;
  std::list<DeviceMemory> memory_;
  Stream stream_;  // ended first
};

inline std::vector<uint32_t> BitsOf(const std::vector<float>& numbers) {
  std::vector<uint32_t> bits;
  for (const float x : numbers) bits.push_back(Bits(x));
  return bits;
}
inline std::vector<uint32_t> BitsOf(const std::vector<BF16>& numbers) {
  std::vector<uint32_t> bits;
  for (const BF16 x : numbers) bits.push_back(x.bits);
  return bits;
}

// The result of compute(TestGpu&), which must be the same in both orders of threads and blocks. A
// real GPU runs it twice.
template <class Compute>
auto InBothOrders(const Compute& compute) {
  TestGpu forward(ThreadOrder::kAscending), backward(ThreadOrder::kDescending);
  const auto result = compute(forward);
  EXPECT_EQ(BitsOf(compute(backward)), BitsOf(result)) << "threads disturb each other";
  return result;
}

inline std::vector<float> RandomNumbers(int64_t n, uint32_t seed, float low = -1, float high = 1) {
  RandomFloats random(seed);
  std::vector<float> numbers(static_cast<size_t>(n));
  random.Fill(numbers, low, high);
  return numbers;
}
inline std::vector<BF16> RoundedToBF16(const std::vector<float>& numbers) {
  std::vector<BF16> rounded;
  for (const float x : numbers) rounded.push_back(ToBF16(x));
  return rounded;
}

// The rows [begin, begin + count) of numbers [.., cols].
template <class T>
std::vector<T> RowsOf(const std::vector<T>& numbers, int64_t cols, int64_t begin, int64_t count) {
  return {numbers.begin() + begin * cols, numbers.begin() + (begin + count) * cols};
}

// A matrix [columns, k] in panels.
template <class T>
std::vector<std::byte> Packed(DType dtype, const std::vector<T>& w, int64_t columns, int64_t k) {
  const int64_t panel_bytes = kernels::PanelBytes(dtype, k);
  std::vector<std::byte> panels(kernels::PanelCount(columns) * panel_bytes);
  for (int64_t panel = 0; panel < kernels::PanelCount(columns); ++panel) {
    const void* rows[kernels::kPanelColumns] = {};
    for (int64_t c = 0; c < kernels::kPanelColumns && panel * kernels::kPanelColumns + c < columns;
         ++c) {
      rows[c] = w.data() + (panel * kernels::kPanelColumns + c) * k;
    }
    kernels::PackPanel(dtype, rows, k, panels.data() + panel * panel_bytes);
  }
  return panels;
}

}  // namespace godwit::cuda
