#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::glm_test {
namespace {

using ::testing::HasSubstr;

DecoderSpec Glm(const std::string& fields = "", const std::string& type = "glm") {
  return SmallSpec(fmt::format(R"("model_type":"{}","head_dim":8{}{})", type,
                               fields.empty() ? "" : ",", fields));
}

TEST(GlmTest, ASilentConfig) {
  const DecoderSpec spec = Glm();
  EXPECT_EQ(spec.rotary.rotary_dim, 4);
  EXPECT_TRUE(spec.interleaved_rotary && spec.mlp.fused && spec.qkv_bias);
  EXPECT_FALSE(spec.attention_out_bias || spec.mlp.bias || spec.output_norms);
  EXPECT_EQ(spec.norm_epsilon, 1.5625e-7f);
  EXPECT_EQ(spec.mlp.activation, ops::Activation::kSilu);
}

TEST(GlmTest, ReadsWhatItsVariationsState) {
  EXPECT_EQ(Glm(R"("partial_rotary_factor":1)").rotary.rotary_dim, 8);
  EXPECT_EQ(Glm(R"("partial_rotary_factor":0.4)").rotary.rotary_dim, 2) << "3, made even";
  EXPECT_EQ(Glm(R"("rope_parameters":{"partial_rotary_factor":0.75})").rotary.rotary_dim, 6);
  EXPECT_FALSE(Glm(R"("attention_bias":false)").qkv_bias);
  EXPECT_TRUE(Glm("", "glm4").output_norms);
  EXPECT_EQ(Glm("", "glm4").rotary.rotary_dim, 4);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { Glm(R"("partial_rotary_factor":2)"); }),
              HasSubstr("partial_rotary_factor"));
}

}  // namespace
}  // namespace godwit::glm_test
