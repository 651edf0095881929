#include "quant/first_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/quant_test_support.h"

namespace godwit::quant::first_layers_test {
namespace {

std::unique_ptr<Decoder> LoadFirst(const TestModel& model, int64_t layers) {
  ThreadPool pool(2);
  return LoadFirstLayers(model.spec, model.weights, layers, pool, {});
}

TEST(FirstLayers, GiveTheInputsOfTheWholeModel) {
  const auto pieces = TestPieces(2, 12);
  for (const TestModel& model :
       {TestModel(), TestModel(SmallSpec(R"("model_type":"mixtral","num_local_experts":3,)"
                                         R"("sliding_window":4)"))}) {
    const auto decoder = Load(model.spec, model.weights);
    const Calibration whole = Calibrate(*TestExec(), *decoder, pieces, nullptr);
    const Calibration first = Calibrate(*TestExec(), *LoadFirst(model, 1), pieces, nullptr);
    EXPECT_EQ(2 * first.size(), whole.size());
    for (const auto& [name, seen] : first) EXPECT_EQ(seen.largest, whole.at(name).largest) << name;
    EXPECT_EQ(LoadFirst(model, 2)->weight_bytes(), decoder->weight_bytes());
  }
}

TEST(FirstLayers, OthersAreNotRead) {
  const TestModel model;
  LoadFirst(model, 1);
  EXPECT_THAT(model.weights.released(), testing::Contains("model.layers.0.mlp.up_proj.weight"));
  EXPECT_THAT(model.weights.released(), testing::Each(testing::Not(testing::HasSubstr("s.1."))));
}

}  // namespace
}  // namespace godwit::quant::first_layers_test
