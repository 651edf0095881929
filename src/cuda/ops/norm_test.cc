#include "cuda/ops/norm.h"

#include "cuda/test_support.h"

namespace godwit::cuda::norm_test {
namespace {

constexpr int64_t kCols[] = {1, 2, 5, 31, 32, 33, 64, 255, 256, 257, 1000, 1024, 1025, 2049};

// A sum of n squares in 256 chains and 13 steps more, a division, a root and two products.
double NormTolerance(int64_t n) { return (static_cast<double>(n) / 256 + 20) * kEpsilon; }

TEST(RmsNormRows, IsCloseToTheScalarKernel) {
  for (const int64_t cols : kCols) {
    const int64_t rows = 3;
    const std::vector<float> x = RandomNumbers(rows * cols, 1, -2, 3);
    const std::vector<float> weight = RandomNumbers(cols, 2, 0.5f, 1.5f);
    const std::vector<float> out = InBothOrders([&](TestGpu& gpu) {
      const auto result = gpu.NewMatrix<float>(rows, cols);
      RmsNormRows(gpu.stream(), gpu.PutMatrix(x, rows, cols), gpu.Put(weight), 1e-2f, result);
      return gpu.GetMatrix(result);
    });
    std::vector<float> expected(out.size());
    for (int64_t row = 0; row < rows; ++row) {
      Scalar().rms_norm(x.data() + row * cols, weight.data(), 1e-2f, cols,
                        expected.data() + row * cols);
    }
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], expected[i], NormTolerance(cols) * std::fabs(expected[i]))
          << cols << " columns, element " << i;
    }
  }
}

TEST(RmsNormRows, RowsHaveTheSameBitsAloneInPlaceAndAsBF16) {
  for (const int64_t cols : {5, 64, 257}) {
    const int64_t rows = 7;
    const std::vector<float> x = RandomNumbers(rows * cols, 3, -2, 3);
    const std::vector<float> weight = RandomNumbers(cols, 4, 0.5f, 1.5f);
    TestGpu gpu(ThreadOrder::kAscending);
    const auto together = gpu.NewMatrix<float>(rows, cols);
    const auto bf16 = gpu.NewMatrix<BF16>(rows, cols);
    const float* const w = gpu.Put(weight);
    const auto input = gpu.PutMatrix(x, rows, cols);
    RmsNormRows(gpu.stream(), input, w, 1e-5f, together);
    RmsNormRows(gpu.stream(), input, w, 1e-5f, bf16);
    const std::vector<float> expected = gpu.GetMatrix(together);
    for (int64_t row = 0; row < rows; ++row) {
      const std::vector<float> one = RowsOf(x, cols, row, 1);
      const DeviceMatrix<float> alone = {gpu.Put(one), 1, cols, cols};
      RmsNormRows(gpu.stream(), alone, w, 1e-5f, alone);
      EXPECT_EQ(BitsOf(gpu.GetMatrix(alone)), BitsOf(RowsOf(expected, cols, row, 1)));
    }
    const int64_t padded = (cols + 1) / 2 * 2;
    const std::vector<BF16> rounded = gpu.GetMatrix(bf16, padded);
    for (int64_t i = 0; i < rows * padded; ++i) {
      const int64_t col = i % padded;
      const BF16 number = col < cols ? ToBF16(expected[i / padded * cols + col]) : BF16{0};
      EXPECT_EQ(rounded[i].bits, number.bits) << i;
    }
  }
}

struct Function {
  ActivationKind kind;
  void (*scalar)(const float* x, int64_t n, float* out) noexcept;
};
const Function kFunctions[] = {{ActivationKind::kSilu, Scalar().silu},
                               {ActivationKind::kGeluErf, Scalar().gelu_erf},
                               {ActivationKind::kGeluTanh, Scalar().gelu_tanh},
                               {ActivationKind::kRelu, Scalar().relu}};

TEST(ActivateGatedRows, IsCloseToTheScalarKernels) {
  for (const Function& function : kFunctions) {
    for (const int64_t cols : {1, 33, 1023, 1024, 2050}) {
      const int64_t rows = 2;
      const std::vector<float> x = RandomNumbers(rows * 2 * cols, 5, -9, 9);
      const std::vector<float> out = InBothOrders([&](TestGpu& gpu) {
        const auto result = gpu.NewMatrix<float>(rows, cols);
        ActivateGatedRows(gpu.stream(), function.kind, gpu.PutMatrix(x, rows, 2 * cols), result);
        return gpu.GetMatrix(result);
      });
      std::vector<float> gate(static_cast<size_t>(cols));
      for (int64_t i = 0; i < rows * cols; ++i) {
        const float* const row = x.data() + i / cols * 2 * cols;
        if (i % cols == 0) function.scalar(row, cols, gate.data());
        const float up = row[cols + i % cols];
        ASSERT_NEAR(out[i], gate[i % cols] * up, 8 * kEpsilon * std::fabs(row[i % cols] * up))
            << static_cast<int>(function.kind) << ", " << cols << " columns, element " << i;
      }
    }
  }
}

TEST(ActivateRows, RoundsAndSquares) {
  const std::vector<float> x = {-3, -0.5f, 0, 0.3f, 2.00390625f};
  TestGpu gpu(ThreadOrder::kAscending);
  const auto rounded = gpu.NewMatrix<BF16>(1, 5), squared = gpu.NewMatrix<BF16>(1, 5);
  const auto input = gpu.PutMatrix(x, 1, 5);
  ActivateRows(gpu.stream(), ActivationKind::kNone, input, rounded);
  ActivateRows(gpu.stream(), ActivationKind::kSquaredRelu, input, squared);
  const std::vector<BF16> plain = gpu.GetMatrix(rounded, 6), squares = gpu.GetMatrix(squared, 6);
  for (size_t i = 0; i < 5; ++i) {
    const float positive = std::max(x[i], 0.0f);
    EXPECT_EQ(plain[i].bits, ToBF16(x[i]).bits) << i;
    EXPECT_EQ(squares[i].bits, ToBF16(positive * positive).bits) << i;
  }
  EXPECT_EQ(plain[5].bits, 0);
  EXPECT_EQ(squares[5].bits, 0);
}

TEST(AddRows, HasTheBitsOfTheCpu) {
  for (const int64_t cols : {1, 100, 1025}) {
    const std::vector<float> x = RandomNumbers(3 * cols, 6), y = RandomNumbers(3 * cols, 7, -9, 9);
    const std::vector<float> sum = InBothOrders([&](TestGpu& gpu) {
      const DeviceMatrix<float> out = {gpu.Put(x), 3, cols, cols};
      AddRows(gpu.stream(), gpu.PutMatrix(y, 3, cols), out);
      return gpu.GetMatrix(out);
    });
    for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(Bits(sum[i]), Bits(x[i] + y[i]));
  }
}

TEST(AddGatedRows, IsCloseToTheCpuWhateverTheStrideOfGates) {
  for (const int64_t cols : {1, 100, 1025}) {
    const int64_t rows = 3, stride = 5;
    const std::vector<float> x = RandomNumbers(rows * cols, 8);
    const std::vector<float> y = RandomNumbers(rows * cols, 9, -9, 9);
    const std::vector<float> gates = RandomNumbers(rows * stride, 10, -20, 20);
    const std::vector<float> sum = InBothOrders([&](TestGpu& gpu) {
      const DeviceMatrix<float> out = {gpu.Put(x), rows, cols, cols};
      AddGatedRows(gpu.stream(), gpu.PutMatrix(y, rows, cols), {gpu.Put(gates), rows, 1, stride},
                   out);
      return gpu.GetMatrix(out);
    });
    for (int64_t i = 0; i < rows * cols; ++i) {
      const double share = 1 / (1 + std::exp(-double{gates[i / cols * stride]}));
      ASSERT_NEAR(sum[i], x[i] + share * y[i],
                  4 * kEpsilon * (std::fabs(x[i]) + share * std::fabs(y[i])))
          << cols << " columns, element " << i;
    }
  }
}

TEST(EmptyMatrices, AreNoWork) {
  EmulatedDevice device;
  const Stream stream(device);
  AddRows(stream, {nullptr, 0, 5, 5}, {nullptr, 0, 5, 5});
  EXPECT_EQ(device.launches(), 0);
}

}  // namespace
}  // namespace godwit::cuda::norm_test
