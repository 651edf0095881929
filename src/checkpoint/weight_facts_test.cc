#include "checkpoint/weight_facts.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/thread_pool.h"
#include "checkpoint/model_folder.h"
#include "model/loader.h"

namespace godwit::weight_facts_test {
namespace {

class WeightFactsTest : public testing::TestWithParam<const char*> {};

// The plan is made without reading the weights, and is exact all the same.
TEST_P(WeightFactsTest, PredictTheMemoryOfTheLoadedWeights) {
  const ModelFolder model(std::string(GODWIT_SOURCE_DIR "/tests/") + GetParam());
  ThreadPool pool(1);
  std::vector<std::optional<DType>> storages{std::nullopt};
  for (const WeightType& type : kWeightTypes) storages.emplace_back(type.dtype);
  for (const auto& storage : storages) {
    const WeightFacts facts = FactsOf(model.spec(), model.weights(), storage);
    EXPECT_EQ(facts.problem, "");
    const auto decoder = LoadDecoder(model.spec(), model.weights(), pool, {}, storage);
    EXPECT_EQ(facts.loaded_bytes, decoder->weight_bytes());
  }
}

INSTANTIATE_TEST_SUITE_P(Families, WeightFactsTest,
                         testing::Values("data/tiny-llama", "golden/llama/mqa_five_heads",
                                         "golden/llama/bf16", "golden/llama/tied",
                                         "golden/llama/sharded", "golden/opt/post_norm",
                                         "golden/opt/untied", "golden/bloom/bare_model",
                                         "golden/mixtral/bf16", "golden/glm4/sandwich",
                                         "golden/int8/mixtral/experts", "golden/packed/gptq_order",
                                         "golden/packed/awq_experts", "golden/packed/nf4_nested",
                                         "golden/gguf/llama_q4_k.gguf",
                                         "golden/gguf/llama_tied-00001-of-00003.gguf"));

TEST(WeightFacts, CountWeightsThatArePacked) {
  const auto facts = [](const std::string& name) {
    const ModelFolder model(GODWIT_SOURCE_DIR "/tests/golden/packed/" + name);
    return FactsOf(model.spec(), model.weights(), std::nullopt);
  };
  // The parameters of two tables, two layers and the norms.
  const int64_t layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 96;
  const int64_t parameters = 2 * 51 * 64 + 2 * layer + 5 * 64;
  for (const char* name : {"w4a16", "w8a16_channel_zeros", "gptq", "gptq_zeros", "awq"}) {
    EXPECT_EQ(facts(name).parameters, parameters) << name;
    EXPECT_TRUE(facts(name).roundings.empty()) << name;
  }
  EXPECT_EQ(facts("nf4_nested").parameters, parameters + 2 * 3 * 64 * (320 - 96));
  EXPECT_EQ(facts("nf4_nested").roundings.size(), 2u);
  EXPECT_EQ(facts("w4a16_channel").roundings.size(), 1u);
}

TEST(WeightFacts, CountTypesOfTensors) {
  const ModelFolder model(GODWIT_SOURCE_DIR "/tests/golden/gguf/llama_q4_k.gguf");
  const auto types = CountTypes(model.weights());
  ASSERT_EQ(types.size(), 3u);
  EXPECT_EQ(types[0], std::pair(std::string("Q4_K"), int64_t{12}))
      << "q, k, v, gate and up of two layers, tables";
  EXPECT_EQ(types[1], std::pair(std::string("F32"), int64_t{5}));
  EXPECT_EQ(types[2], std::pair(std::string("Q8_0"), int64_t{4})) << "whose rows are too short";
}

TEST(WeightFacts, GroupTheTensorsOfLayers) {
  const ModelFolder model(GODWIT_SOURCE_DIR "/tests/data/tiny-llama");
  int64_t count = 0;
  for (const TensorGroup& group : GroupTensors(model.weights())) {
    count += group.count;
    EXPECT_EQ(group.count, group.name.find('*') == std::string::npos ? 1 : model.spec().layers)
        << group.name;
  }
  EXPECT_EQ(count, std::ssize(model.weights().Names()));
}

}  // namespace
}  // namespace godwit::weight_facts_test
