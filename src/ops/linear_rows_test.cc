// Norms and activations fused with rounding or quantization give the bits of the separate ones.
#include "ops/linear_rows.h"

#include "ops/activation.h"
#include "ops/norm.h"
#include "ops/test_support.h"

namespace godwit::ops::linear_rows_test {
namespace {

constexpr DType kStorages[] = {DType::kF32, DType::kBF16, DType::kI8};

class LinearRowsTest : public OpsTest {
 protected:
  // fused(exec, rows) fills the input of a layer, plain(view) the same rows in f32.
  template <typename Fused, typename Plain>
  void ExpectSameProduct(int64_t rows, int64_t cols, const Fused& fused, const Plain& plain) {
    const RawWeight raw(DType::kF32, 70, cols, 1);
    for (const DType storage : kStorages) {
      for (const InputQuantization& how : kInputs) {
        if (storage != DType::kI8 && how.kind != InputScale::kPerToken) continue;
        Weight weight = raw.PackAs(one_, storage);
        weight.input = how;
        weight.row_sums = GappedMatrix(1, 70, 6).Row(0);
        GappedMatrix want(rows, 70), got(rows, 70), unfused(rows, cols);
        plain(unfused);
        Linear(On(three_), unfused.view(), weight, want.view());
        const Exec exec = On(three_);
        Workspace::Scope scope(workspace_);
        LinearRows input = NewLinearRows(exec, weight, rows);
        fused(exec, input);
        Linear(exec, input, weight, got.view());
        ASSERT_EQ(got.Values(), want.Values()) << Name(storage) << ", " << cols << " inputs";
      }
    }
  }
};

TEST_P(LinearRowsTest, NormGivesTheSameProduct) {
  for (const int64_t cols : {1, 7, 64, 333}) {
    const GappedMatrix x(90, cols, 2);
    const NormWeights norm{.kind = NormKind::kRms,
                           .epsilon = 1e-5f,
                           .weight = GappedMatrix(1, cols, 3, 0.5f, 1.5f).Row(0),
                           .bias = {}};
    ExpectSameProduct(
        90, cols, [&](const Exec& exec, LinearRows& out) { Norm(exec, x.view(), norm, out); },
        [&](GappedMatrix& out) { Norm(On(one_), x.view(), norm, out.view()); });
  }
}

TEST_P(LinearRowsTest, ActivationGivesTheSameProduct) {
  for (const int64_t cols : {1, 7, 64, 333}) {
    const GappedMatrix x(40, cols, 4, -4, 4);
    ExpectSameProduct(
        40, cols,
        [&](const Exec& exec, LinearRows& out) {
          Activate(exec, Activation::kGeluErf, x.view(), out);
        },
        [&](GappedMatrix& out) {
          LinearRows rows = out.AsLinearRows();
          Activate(On(one_), Activation::kGeluErf, x.view(), rows);
        });
    const GappedMatrix gate_up(40, 2 * cols, 5, -4, 4);
    ExpectSameProduct(
        40, cols,
        [&](const Exec& exec, LinearRows& out) {
          ActivateGated(exec, Activation::kSilu, gate_up.view(), {&out, 1});
        },
        [&](GappedMatrix& out) {
          LinearRows rows = out.AsLinearRows();
          ActivateGated(On(one_), Activation::kSilu, gate_up.view(), {&rows, 1});
        });
  }
}

GODWIT_FOR_EVERY_ISA(LinearRowsTest);

}  // namespace
}  // namespace godwit::ops::linear_rows_test
