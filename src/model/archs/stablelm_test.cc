#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::stablelm_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

TEST(StableLmTest, ReadsWhatItsVariationsState) {
  const DecoderSpec spec = SmallSpecOf("stablelm", R"("partial_rotary_factor":0.5)");
  EXPECT_EQ(spec.rotary.rotary_dim, 2);
  EXPECT_EQ(spec.norm, ops::NormKind::kLayer);
  EXPECT_TRUE(spec.norm_bias);
  EXPECT_FALSE(spec.qkv_bias);
  EXPECT_EQ(spec.topology, Topology::kSequential);
  EXPECT_EQ(SmallSpecOf("stablelm", R"("use_parallel_residual":true)").topology,
            Topology::kParallelSharedNorm);
  EXPECT_TRUE(SmallSpecOf("stablelm", R"("use_qkv_bias":true)").qkv_bias);
  const DecoderSpec normed = SmallSpecOf("stablelm", R"("qk_layernorm":true)");
  EXPECT_EQ(normed.qk_norm, QkNorm::kEachHead);
  std::vector<std::string> names;
  for (const WantedTensor& tensor : WantedTensors(normed)) names.push_back(tensor.name);
  EXPECT_THAT(names, IsSupersetOf({"model.layers.0.self_attn.q_layernorm.norms.3.weight",
                                   "model.layers.1.self_attn.k_layernorm.norms.0.weight"}));
  EXPECT_THAT(WindowsOf(SmallSpecOf("stablelm")), ElementsAre(0, 0));
}

}  // namespace
}  // namespace godwit::stablelm_test
