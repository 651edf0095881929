#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::cohere_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CohereTest, ASilentConfig) {
  const DecoderSpec spec = SmallSpecOf("cohere");
  EXPECT_EQ(spec.topology, Topology::kParallelSharedNorm);
  EXPECT_EQ(spec.norm, ops::NormKind::kLayer);
  EXPECT_TRUE(spec.interleaved_rotary && spec.tied_head);
  EXPECT_FALSE(spec.norm_bias || spec.qkv_bias);
  EXPECT_EQ(spec.logit_scale, 0.0625f);
  EXPECT_EQ(spec.rotary.theta, 5e5);
  EXPECT_EQ(spec.qk_norm, QkNorm::kNone);
  EXPECT_EQ(SmallSpecOf("cohere", R"("use_qk_norm":true)").qk_norm, QkNorm::kEachHead);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { SmallSpecOf("cohere", R"("logit_scale":0)"); }),
              HasSubstr("logit_scale"));
}

TEST(CohereTest, TheSecondHasPositionsBehindWindowsAlone) {
  const DecoderSpec spec =
      SmallSpecOf("cohere2", R"("sliding_window":9,"sliding_window_pattern":2)");
  EXPECT_THAT(WindowsOf(spec), ElementsAre(9, 0));
  EXPECT_THAT(RotaryDimsOf(spec), ElementsAre(4, 0));
  EXPECT_EQ(spec.rotary.theta, 1e4);
}

}  // namespace
}  // namespace godwit::cohere_test
