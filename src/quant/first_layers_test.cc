#include "quant/first_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/quant_test_support.h"

namespace godwit::quant {
namespace {

std::unique_ptr<Decoder> LoadFirst(const TestModel& model, int64_t layers) {
  ThreadPool pool(2);
  return LoadFirstLayers(model.spec, model.weights, layers, pool, {});
}

TEST(FirstLayers, SeeWhatTheyDoInTheWholeModel) {
  const TestModel model;
  const auto pieces = TestPieces(2, 12);
  const Calibration whole =
      Calibrate(*TestExec(), *Load(model.spec, model.weights), pieces, nullptr);
  const Calibration first = Calibrate(*TestExec(), *LoadFirst(model, 1), pieces, nullptr);
  EXPECT_EQ(first.size(), 4);
  for (const auto& [name, seen] : first) EXPECT_EQ(seen.largest, whole.at(name).largest) << name;
  EXPECT_EQ(LoadFirst(model, 2)->weight_bytes(), Load(model.spec, model.weights)->weight_bytes());
}

TEST(FirstLayers, OthersAreNotRead) {
  const TestModel model;
  LoadFirst(model, 1);
  EXPECT_THAT(model.weights.released(), testing::Contains("model.layers.0.mlp.up_proj.weight"));
  EXPECT_THAT(model.weights.released(), testing::Each(testing::Not(testing::HasSubstr("s.1."))));
}

}  // namespace
}  // namespace godwit::quant
