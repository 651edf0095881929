#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  EXPECT_THAT(
      ErrorOf(ErrorKind::kUnsupported, [] { SmallSpecOf("stablelm", R"("qk_layernorm":true)"); }),
      HasSubstr("qk_layernorm: expected false"));
  EXPECT_THAT(SmallSpecOf("stablelm").windows, ElementsAre(0, 0));
}

}  // namespace
}  // namespace godwit
