// Shared parts of this room's tests: matrices whose gaps are poisoned, weights as a checkpoint
// stores them, and instances of tests for each instruction set. Only *_test.cc files include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernel_test_support.h"
#include "ops/exec.h"
#include "ops/linear.h"
#include "ops/pack_weight.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit::ops {

using kernels::Isa;
using kernels::IsaPointers;
using kernels::IsaTestName;
using kernels::kEpsilon;
using kernels::kNan;
using kernels::kTiny;
using kernels::RandomFloats;

// A matrix [rows, cols] f32 with NaN between the rows. A read there shows in the result, a write
// there in GapsIntact().
class GappedMatrix {
 public:
  GappedMatrix(int64_t rows, int64_t cols)
      : rows_(rows), cols_(cols), values_(static_cast<size_t>(rows * (cols + kGap)), kNan) {}

  GappedMatrix(int64_t rows, int64_t cols, uint32_t seed, float low = -1, float high = 1)
      : GappedMatrix(rows, cols) {
    RandomFloats random(seed);
    for (int64_t row = 0; row < rows; ++row) {
      for (float& x : view().RowSpan(row)) x = random(low, high);
    }
  }

  MatrixView<float> view() { return {values_.data(), rows_, cols_, cols_ + kGap}; }
  MatrixView<const float> view() const { return {values_.data(), rows_, cols_, cols_ + kGap}; }
  // To be filled in f32.
  LinearRows AsLinearRows() {
    return {.dtype = DType::kF32,
            .data = reinterpret_cast<std::byte*>(values_.data()),
            .rows = rows_,
            .cols = cols_,
            .stride = cols_ + kGap};
  }
  float At(int64_t row, int64_t col) const { return view().Row(row)[col]; }

  std::vector<float> Row(int64_t row) const {
    const auto span = view().RowSpan(row);
    return {span.begin(), span.end()};
  }

  std::vector<float> Values() const {
    std::vector<float> all;
    for (int64_t row = 0; row < rows_; ++row) {
      const auto span = view().RowSpan(row);
      all.insert(all.end(), span.begin(), span.end());
    }
    return all;
  }

  bool GapsIntact() const {
    for (int64_t row = 0; row < rows_; ++row) {
      const float* gap = view().Row(row) + cols_;
      if (!std::all_of(gap, gap + kGap, [](float x) { return std::isnan(x); })) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kGap = 5;

  int64_t rows_, cols_;
  std::vector<float> values_;
};

// Random [outputs, inputs] in row-major order, one byte off every alignment, as in a checkpoint.
class RawWeight {
 public:
  RawWeight(DType dtype, int64_t outputs, int64_t inputs, uint32_t seed)
      : dtype_(dtype),
        outputs_(outputs),
        inputs_(inputs),
        bytes_(1 + static_cast<size_t>(outputs * inputs) * SizeOf(dtype)) {
    RandomFloats random(seed);
    for (int64_t i = 0; i < outputs * inputs; ++i) {
      const float x = random();
      const F16 half = ToF16(x);
      const BF16 brain = ToBF16(x);
      const void* source = dtype == DType::kF16    ? static_cast<const void*>(&half)
                           : dtype == DType::kBF16 ? static_cast<const void*>(&brain)
                                                   : static_cast<const void*>(&x);
      std::memcpy(Element(i), source, SizeOf(dtype));
    }
  }

  const std::byte* Row(int64_t output) const {
    return const_cast<RawWeight*>(this)->Element(output * inputs_);
  }

  // As stored, widened.
  float At(int64_t output, int64_t input) const {
    const std::byte* element = Row(output) + static_cast<size_t>(input) * SizeOf(dtype_);
    if (dtype_ == DType::kF32) {
      float x;
      std::memcpy(&x, element, sizeof(x));
      return x;
    }
    uint16_t bits;
    std::memcpy(&bits, element, sizeof(bits));
    return dtype_ == DType::kF16 ? ToFloat(F16{bits}) : ToFloat(BF16{bits});
  }

  Weight Pack(ThreadPool& pool) const { return PackAs(pool, dtype_); }
  Weight PackAs(ThreadPool& pool, DType storage, Arena* arena = nullptr) const {
    return PackWeight(
        pool, dtype_, outputs_, inputs_, [&](int64_t output) -> const void* { return Row(output); },
        storage, {}, arena);
  }

  Table AsTable() const {
    Table table{.dtype = dtype_,
                .rows = outputs_,
                .cols = inputs_,
                .data = Buffer(static_cast<int64_t>(bytes_.size()) - 1)};
    std::memcpy(table.data.data(), bytes_.data() + 1, bytes_.size() - 1);
    return table;
  }

 private:
  std::byte* Element(int64_t i) {
    return bytes_.data() + 1 + static_cast<size_t>(i) * SizeOf(dtype_);
  }

  DType dtype_;
  int64_t outputs_, inputs_;
  std::vector<std::byte> bytes_;
};

// Every way to quantize the input of an int8 layer.
inline constexpr InputQuantization kInputs[] = {
    {.kind = InputScale::kPerToken},
    {.kind = InputScale::kPerToken, .outlier_threshold = 0.95f},
    {.kind = InputScale::kPerTensor},
    {.kind = InputScale::kStatic, .scale = 0.005f},
    {.kind = InputScale::kPerToken, .symmetric = false},
    {.kind = InputScale::kPerTensor, .symmetric = false},
    {.kind = InputScale::kStatic, .symmetric = false, .scale = 0.005f, .zero_point = -100}};

inline constexpr DType kFloatTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

class OpsTest : public kernels::IsaTest {
 protected:
  void SetUp() override {
    kernels::IsaTest::SetUp();
    // Scratch memory is zero when it is new, later it holds anything: NaN here. The first round
    // makes the workspace settle on its size.
    for (int round = 0; round < 2; ++round) {
      Workspace::Scope scope(workspace_);
      const auto scratch = workspace_.Matrix<float>(1, 1 << 20);
      std::fill_n(scratch.data, scratch.cols, kNan);
    }
  }

  Exec On(ThreadPool& pool, const CancelToken* cancel = nullptr) {
    return {.pool = pool, .kernels = table(), .workspace = workspace_, .cancel = cancel};
  }

  ThreadPool one_{1};
  ThreadPool three_{3};
  Workspace workspace_;
};

}  // namespace godwit::ops
