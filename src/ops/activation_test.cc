#include "ops/activation.h"

#include <numbers>

#include "ops/test_support.h"

namespace godwit::ops::activation_test {
namespace {

constexpr Activation kActivations[] = {Activation::kSilu, Activation::kGeluErf,
                                       Activation::kGeluTanh, Activation::kRelu,
                                       Activation::kSquaredRelu};

double Oracle(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGeluErf:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::kGeluTanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSquaredRelu:
      return std::max(x, 0.0) * std::max(x, 0.0);
  }
  return kNan;
}

// A bound below the difference of the two forms of GELU (4e-4) and above the kernels' errors.
double Tolerance(double x) { return 16 * kEpsilon * (1 + std::fabs(x)); }

class ActivationTest : public OpsTest {};

TEST_P(ActivationTest, EveryElement) {
  for (const Activation activation : kActivations) {
    for (const int64_t cols : {1, 15, 16, 100}) {
      const GappedMatrix x(90, cols, 1, -6, 6);
      GappedMatrix out(90, cols);
      LinearRows rows = out.AsLinearRows();
      Activate(On(three_), activation, x.view(), rows);
      for (int64_t i = 0; i < 90; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          ASSERT_NEAR(out.At(i, j), Oracle(activation, x.At(i, j)), Tolerance(x.At(i, j)));
        }
      }
      EXPECT_TRUE(out.GapsIntact());
    }
  }
}

TEST_P(ActivationTest, TheGateStandsLeftOfWhatItGates) {
  for (const Activation activation : kActivations) {
    for (const int64_t n : {1, 15, 16, 100}) {
      const GappedMatrix gate_up(7, 2 * n, 2, -4, 4);
      GappedMatrix out(7, n);
      LinearRows rows = out.AsLinearRows();
      ActivateGated(On(three_), activation, gate_up.view(), {&rows, 1});
      for (int64_t i = 0; i < 7; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const double up = gate_up.At(i, n + j);
          ASSERT_NEAR(out.At(i, j), Oracle(activation, gate_up.At(i, j)) * up,
                      Tolerance(gate_up.At(i, j)) * (1 + std::fabs(up)));
        }
      }
      EXPECT_TRUE(out.GapsIntact());
    }
  }
}

TEST_P(ActivationTest, ResultsInFloatsMayReplaceTheGates) {
  for (const Activation activation : kActivations) {
    for (const int64_t n : {1, 16, 100}) {
      GappedMatrix gate_up(7, 2 * n, 2, -4, 4);
      GappedMatrix out(7, n);
      LinearRows rows = out.AsLinearRows();
      ActivateGated(On(three_), activation, gate_up.view(), {&rows, 1});
      const auto gates = gate_up.view().Cols(0, n);
      ActivateGated(On(three_), activation, gate_up.view(), gates);
      for (int64_t i = 0; i < 7; ++i) {
        for (int64_t j = 0; j < n; ++j) ASSERT_EQ(gates.Row(i)[j], out.At(i, j));
      }
      EXPECT_TRUE(gate_up.GapsIntact());
    }
  }
}

TEST_P(ActivationTest, TheClampedUnit) {
  for (const ClampedSwiglu unit : {ClampedSwiglu{}, {.alpha = 1.25f, .limit = 2}}) {
    for (const int64_t n : {1, 15, 16, 100}) {
      GappedMatrix gate_up(7, 2 * n, 2, -9, 9);
      gate_up.view().Row(6)[0] = static_cast<float>(kNan);
      GappedMatrix out(7, n);
      LinearRows rows = out.AsLinearRows();
      ActivateGated(On(three_), unit, gate_up.view(), {&rows, 1});
      for (int64_t i = 0; i < 7; ++i) {
        for (int64_t j = i == 6 ? 1 : 0; j < n; ++j) {
          const double limit = unit.limit;
          const double gate = std::min<double>(gate_up.At(i, j), limit);
          const double up = std::clamp<double>(gate_up.At(i, n + j), -limit, limit);
          ASSERT_NEAR(out.At(i, j), (up + 1) * gate / (1 + std::exp(-unit.alpha * gate)),
                      2 * Tolerance(gate) * (1 + std::fabs(up)));
        }
      }
      EXPECT_TRUE(std::isnan(out.At(6, 0)));
      EXPECT_TRUE(out.GapsIntact());
    }
  }
}

TEST_P(ActivationTest, Xielu) {
  const ops::Xielu unit{.alpha_p = 0.7f, .alpha_n = 1.1f, .beta = 0.5f, .eps = -0.25f};
  for (const int64_t n : {1, 15, 100}) {
    GappedMatrix x(7, n, 2, -9, 9);
    x.view().Row(0)[0] = -0.125f;  // above eps
    x.view().Row(6)[0] = static_cast<float>(kNan);
    GappedMatrix out(7, n);
    LinearRows rows = out.AsLinearRows();
    Activate(On(three_), unit, x.view(), rows);
    for (int64_t i = 0; i < 7; ++i) {
      for (int64_t j = i == 6 ? 1 : 0; j < n; ++j) {
        const double v = x.At(i, j);
        const double bent = v > 0 ? unit.alpha_p * v * v
                                  : unit.alpha_n * (std::expm1(std::min<double>(v, unit.eps)) - v);
        ASSERT_NEAR(out.At(i, j), bent + unit.beta * v, 1e-6 * (1 + v * v));
      }
    }
    EXPECT_TRUE(std::isnan(out.At(6, 0)));
    EXPECT_TRUE(out.GapsIntact());
  }
}

TEST_P(ActivationTest, ScalesEveryElement) {
  const GappedMatrix before(7, 50, 5, -6, 6);
  GappedMatrix x = before;
  Scale(On(three_), 0.75f, x.view());
  for (int64_t i = 0; i < 7; ++i) {
    for (int64_t j = 0; j < 50; ++j) ASSERT_EQ(x.At(i, j), 0.75f * before.At(i, j));
  }
  EXPECT_TRUE(x.GapsIntact());
}

TEST_P(ActivationTest, CapsEveryElementSoftly) {
  const GappedMatrix before(3, 9000, 5, -60, 60);  // a row in several pieces
  GappedMatrix x = before;
  SoftCap(On(three_), 30, x.view());
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 9000; ++j) {
      ASSERT_NEAR(x.At(i, j), 30 * std::tanh(double{before.At(i, j)} / 30), 1e-5);
    }
  }
  EXPECT_TRUE(x.GapsIntact());
}

TEST_P(ActivationTest, ClampsEveryElement) {
  const GappedMatrix before(300, 50, 5, -6, 6);
  GappedMatrix x = before;
  Clamp(On(three_), 1.5f, x.view());
  for (int64_t i = 0; i < 300; ++i) {
    for (int64_t j = 0; j < 50; ++j) {
      ASSERT_EQ(x.At(i, j), std::clamp(before.At(i, j), -1.5f, 1.5f));
    }
  }
  EXPECT_TRUE(x.GapsIntact());
}

TEST_P(ActivationTest, AddsToItsSecondArgument) {
  const GappedMatrix y(300, 50, 3);
  const GappedMatrix before(300, 50, 4);
  GappedMatrix x = before;
  Add(On(three_), y.view(), x.view());
  for (int64_t i = 0; i < 300; ++i) {
    for (int64_t j = 0; j < 50; ++j) ASSERT_EQ(x.At(i, j), before.At(i, j) + y.At(i, j));
  }
  EXPECT_TRUE(x.GapsIntact());
}

GODWIT_FOR_EVERY_ISA(ActivationTest);

}  // namespace
}  // namespace godwit::ops::activation_test
