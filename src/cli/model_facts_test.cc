#include "cli/model_facts.h"

#include <gtest/gtest.h>

#include "godwit/engine.h"

namespace godwit::cli {
namespace {

class ModelFactsTest : public testing::TestWithParam<const char*> {
 protected:
  std::string folder() const { return std::string(GODWIT_SOURCE_DIR "/tests/") + GetParam(); }
};

// The plan is made without reading the weights, and is exact nevertheless.
TEST_P(ModelFactsTest, PredictsTheMemoryOfTheWeights) {
  for (const std::string weights : {"auto", "f32", "bf16", "int8"}) {
    const ModelFacts facts = ReadModelFacts(folder(), weights);
    EXPECT_EQ(facts.problem, "");
    const Engine engine(folder(), {.threads = 1, .weights = weights});
    EXPECT_EQ(facts.weight_bytes, engine.weight_bytes()) << weights;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ModelFactsTest,
                         testing::Values("data/tiny-llama", "golden/llama/mqa_five_heads",
                                         "golden/llama/bf16", "golden/llama/tied",
                                         "golden/llama/sharded", "golden/opt/post_norm",
                                         "golden/opt/untied", "golden/bloom/bare_model",
                                         "golden/mixtral/bf16", "golden/glm4/sandwich",
                                         "golden/int8/mixtral/experts"));

TEST(ModelFacts, GroupsTheTensorsOfLayers) {
  const ModelFacts facts = ReadModelFacts(GODWIT_SOURCE_DIR "/tests/data/tiny-llama");
  int64_t count = 0;
  for (const TensorGroup& group : GroupTensors(*facts.source)) {
    count += group.count;
    EXPECT_EQ(group.count, group.name.find('*') == std::string::npos ? 1 : facts.spec.layers)
        << group.name;
  }
  EXPECT_EQ(count, static_cast<int64_t>(facts.source->Names().size()));
}

}  // namespace
}  // namespace godwit::cli
