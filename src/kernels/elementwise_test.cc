#include <algorithm>
#include <cmath>

#include "kernels/kernel_test_support.h"

namespace godwit::kernels::elementwise_test {
namespace {

using Unary = void (*)(const float*, int64_t, float*) noexcept;
using Binary = void (*)(const float*, const float*, int64_t, float*) noexcept;

class ElementwiseTest : public IsaTest {
 protected:
  // Tests every size and misalignment: in bounds, also in place, each element as if it were alone.
  template <class Kernel>
  void ExpectElementwise(Kernel kernel) {
    RandomFloats random(1);
    for (const int64_t n : kOddSizes) {
      for (const int64_t offset : {0, 1, 5}) {
        Guarded<float> x(n, offset), out(n, offset / 2);
        random.Fill(x, -4, 4);
        kernel(x.data(), n, out.data());
        EXPECT_TRUE(out.GuardsIntact());
        for (int64_t i = 0; i < n; ++i) {
          float alone;
          kernel(&x[i], 1, &alone);
          ASSERT_EQ(Bits(out[i]), Bits(alone)) << i << " of " << n;
        }
        kernel(x.data(), n, x.data());
        EXPECT_TRUE(x.GuardsIntact());
        EXPECT_EQ(std::memcmp(x.data(), out.data(), n * sizeof(float)), 0);
      }
    }
  }

  void ExpectSameBitsAsScalar(Binary kernel, Binary definition) {
    RandomFloats random(2);
    for (const int64_t n : kOddSizes) {
      Guarded<float> a(n, 1), b(n, 2), out(n, 3), want(n);
      random.Fill(a);
      random.Fill(b);
      if (n > 2) a[n / 2] = kNan, b[n - 1] = -kInfinity;
      definition(a.data(), b.data(), n, want.data());
      kernel(a.data(), b.data(), n, out.data());
      EXPECT_TRUE(out.GuardsIntact());
      ExpectSame(out, want);
      Guarded<float> second = b;
      kernel(a.data(), second.data(), n, second.data());
      ExpectSame(second, want);
      kernel(a.data(), b.data(), n, a.data());
      ExpectSame(a, want);
    }
  }

  static void ExpectSame(const Guarded<float>& got, const Guarded<float>& want) {
    for (int64_t i = 0; i < want.size(); ++i) {
      if (std::isnan(want[i])) {
        EXPECT_TRUE(std::isnan(got[i]));
      } else {
        EXPECT_EQ(Bits(got[i]), Bits(want[i]));
      }
    }
  }

  // Every 10007th float, more of them around zero, and the special values.
  static std::vector<float> Sweep() {
    std::vector<float> x;
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 10007) {
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    }
    for (float v = -20; v < 20; v += 1.0f / 512) x.push_back(v);
    for (const float v : {0.0f, -0.0f, kInfinity, -kInfinity, kNan}) x.push_back(v);
    return x;
  }

  // Compares a kernel with its definition. relative(x): the error allowed.
  template <class Relative>
  void ExpectClose(Unary kernel, Unary definition, Relative relative) {
    const std::vector<float> x = Sweep();
    const int64_t n = static_cast<int64_t>(x.size());
    std::vector<float> got(n), want(n);
    kernel(x.data(), n, got.data());
    definition(x.data(), n, want.data());
    for (int64_t i = 0; i < n; ++i) {
      if (!std::isfinite(want[i])) {
        ASSERT_EQ(std::isnan(got[i]), std::isnan(want[i])) << x[i];
        ASSERT_TRUE(std::isnan(want[i]) || got[i] == want[i]) << x[i];
        continue;
      }
      // A factor below kTiny is subnormal and has no relative precision.
      const double absolute = std::abs(x[i]) * std::numeric_limits<float>::denorm_min() * 4 + kTiny;
      ASSERT_NEAR(got[i], want[i], relative(x[i]) * std::abs(want[i]) + absolute) << x[i];
    }
  }
};
GODWIT_FOR_EVERY_ISA(ElementwiseTest);

TEST_P(ElementwiseTest, Add) { ExpectSameBitsAsScalar(table().add, scalar().add); }
TEST_P(ElementwiseTest, Multiply) { ExpectSameBitsAsScalar(table().multiply, scalar().multiply); }

TEST_P(ElementwiseTest, ReluIsExact) {
  ExpectElementwise(table().relu);
  const std::vector<float> x = Sweep();
  std::vector<float> got(x.size()), want(x.size());
  table().relu(x.data(), std::ssize(x), got.data());
  scalar().relu(x.data(), std::ssize(x), want.data());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) << x[i];
  }
}

TEST_P(ElementwiseTest, ClampIsExact) {
  for (const float limit : {0.75f, 6.0f, kInfinity}) {
    ExpectElementwise(
        [&](const float* x, int64_t n, float* out) { table().clamp(x, limit, n, out); });
    const std::vector<float> x = Sweep();
    for (const KernelTable* kernels : {&table(), &scalar()}) {
      std::vector<float> got(x.size());
      kernels->clamp(x.data(), limit, std::ssize(x), got.data());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(std::isnan(x[i]) ? std::isnan(got[i])
                                     : got[i] == std::clamp(x[i], -limit, limit))
            << x[i] << " became " << got[i];
      }
    }
  }
}

TEST_P(ElementwiseTest, SiluWithinFourEpsilon) {
  ExpectElementwise(table().silu);
  ExpectClose(table().silu, scalar().silu, [](float) { return 4 * kEpsilon; });
}

// The gate is not zero, so that an error of x stays one of the result.
TEST_P(ElementwiseTest, TimesSigmoidWithinFourEpsilon) {
  for (const float x : {-3.0f, 0.5f, 1e-20f}) {
    const auto with = [&](const KernelTable& kernels) {
      return [&kernels, x](const float* gate, int64_t n, float* out) {
        const std::vector<float> xs(static_cast<size_t>(n), x);
        kernels.times_sigmoid(xs.data(), gate, n, out);
      };
    };
    ExpectElementwise(with(table()));
    const std::vector<float> gates = {-100, -20, -1, -0.0f, 0, 0.3f, 5, 60, kInfinity, kNan};
    std::vector<float> got(gates.size()), want(gates.size());
    with(table())(gates.data(), std::ssize(gates), got.data());
    with(scalar())(gates.data(), std::ssize(gates), want.data());
    for (size_t i = 0; i < gates.size(); ++i) {
      if (std::isnan(gates[i])) {
        EXPECT_TRUE(std::isnan(got[i]));
      } else {
        EXPECT_NEAR(got[i], want[i], 4 * kEpsilon * std::abs(want[i]) + kTiny) << gates[i];
      }
    }
  }
}

// An error of the exponent is one of the result times the exponent.
TEST_P(ElementwiseTest, DecaysWithinFourEpsilonAndTheirCondition) {
  for (const float rate : {0.01f, 1.0f, 16.0f}) {
    for (const float bias : {0.0f, -5.5f}) {
      const auto with = [&](const KernelTable& kernels) {
        return [&kernels, rate, bias](const float* x, int64_t n, float* out) {
          const std::vector<float> biases(static_cast<size_t>(n), bias);
          kernels.decays(x, biases.data(), rate, n, out);
        };
      };
      ExpectElementwise(with(table()));
      const std::vector<float> x = Sweep();
      std::vector<float> got(x.size()), want(x.size());
      with(table())(x.data(), std::ssize(x), got.data());
      with(scalar())(x.data(), std::ssize(x), want.data());
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(x[i])) {
          ASSERT_TRUE(std::isnan(got[i]));
          continue;
        }
        const double bound = want[i] > 0 ? 4 - 4 * std::log(want[i]) : 0;
        ASSERT_NEAR(got[i], want[i], bound * kEpsilon * want[i] + kTiny) << x[i] << " " << rate;
      }
    }
  }
}

TEST_P(ElementwiseTest, GeluErfWithinSixEpsilon) {
  ExpectElementwise(table().gelu_erf);
  ExpectClose(table().gelu_erf, scalar().gelu_erf, [](float) { return 6 * kEpsilon; });
}

// The sigmoid multiplies the relative error of its argument (two epsilon) by the argument.
TEST_P(ElementwiseTest, GeluTanhWithinFourEpsilonAndItsCondition) {
  ExpectElementwise(table().gelu_tanh);
  ExpectClose(table().gelu_tanh, scalar().gelu_tanh, [](float x) {
    const double v = x;
    const double z = 1.5957691216057308 * (v + 0.044715 * v * v * v);
    return (4 + (x < 0 ? 2 * std::abs(z) : 0)) * kEpsilon;
  });
}

TEST_P(ElementwiseTest, RotateHalf) {
  RandomFloats random(3);
  for (const int64_t half : kOddSizes) {
    Guarded<float> cos(half, 1), sin(half, 2), x(2 * half, 3);
    for (int64_t i = 0; i < half; ++i) {
      const float angle = random(-3, 3);
      cos[i] = std::cos(angle);
      sin[i] = std::sin(angle);
    }
    random.Fill(x);
    Guarded<float> got = x, want = x;
    scalar().rotate_half(cos.data(), sin.data(), half, want.data());
    table().rotate_half(cos.data(), sin.data(), half, got.data());
    EXPECT_TRUE(got.GuardsIntact());
    // An output is two products of numbers up to one, and their sum: three roundings.
    for (int64_t i = 0; i < 2 * half; ++i) ASSERT_NEAR(got[i], want[i], 3 * kEpsilon);
    for (int64_t i = 0; i < half; ++i) {
      float pair[2] = {x[i], x[i + half]};
      table().rotate_half(&cos[i], &sin[i], 1, pair);
      ASSERT_EQ(Bits(pair[0]), Bits(got[i]));
      ASSERT_EQ(Bits(pair[1]), Bits(got[i + half]));
    }
  }
}

// Any head size has its definition's bits; numbers of an odd size are not mixed.
TEST_P(ElementwiseTest, HadamardHasTheBitsOfItsDefinition) {
  RandomFloats random(4);
  std::vector<int64_t> sizes(std::begin(kOddSizes), std::end(kOddSizes));
  for (const int64_t n : {2, 4, 8, 16, 48, 64, 80, 96, 128, 256, 576, 1024}) sizes.push_back(n);
  for (const int64_t n : sizes) {
    Guarded<float> x(n, 1);
    random.Fill(x);
    Guarded<float> got = x, want = x;
    scalar().hadamard(n, want.data());
    table().hadamard(n, got.data());
    EXPECT_TRUE(got.GuardsIntact());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(Bits(got[i]), Bits(want[i])) << i << " of " << n;
    table().hadamard(n, got.data());  // its own inverse
    for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(got[i], x[i], 8 * kEpsilon) << i << " of " << n;
  }
}

// One large number among n becomes n numbers of 1 / sqrt(n) of it.
TEST_P(ElementwiseTest, HadamardSpreadsALargeNumberOverItsBlock) {
  std::vector<float> x(192);
  x[70] = 80;
  table().hadamard(192, x.data());  // three blocks of 64
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(std::abs(x[i]), i / 64 == 1 ? 10 : 0) << i;
  }
}

TEST_P(ElementwiseTest, CentreScores) {
  RandomFloats random(5);
  constexpr int64_t kRows = 3, kStride = kTileTokens + 16;
  for (const int64_t n : kOddSizes) {
    Guarded<float> q(kRows * (n + 1), 1), got(kRows * kStride, 2);
    Guarded<BF16> centre(n, 3);
    random.Fill(q);
    random.Fill(got);
    for (int64_t d = 0; d < n; ++d) centre[d] = ToBF16(random(-1, 1));
    Guarded<float> want = got;
    const auto run = [&](const KernelTable& kernels, Guarded<float>& bias) {
      kernels.centre_scores({.q = q.data(),
                             .q_stride = n + 1,
                             .rows = kRows,
                             .centre = centre.data(),
                             .head_dim = n,
                             .scale = 0.25f,
                             .bias = bias.data(),
                             .bias_stride = kStride});
    };
    run(scalar(), want);
    run(table(), got);
    EXPECT_TRUE(got.GuardsIntact());
    const auto bound = static_cast<double>(n + 2) * kEpsilon;
    for (int64_t i = 0; i < kRows * kStride; ++i) {
      ASSERT_NEAR(got[i], want[i], i % kStride < kTileTokens ? bound : 0) << i << " of " << n;
    }
  }
}

}  // namespace
}  // namespace godwit::kernels::elementwise_test
