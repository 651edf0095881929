#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "model/archs/families.h"

namespace godwit::gpt2_test {
namespace {

using ::testing::HasSubstr;

DecoderSpec Gpt2(const std::string& fields = "") {
  return DescribeGpt2(HfConfig::Parse(
      fmt::format(
          R"({{"model_type":"gpt2","vocab_size":11,"n_embd":16,"n_layer":2,"n_head":4{}{}}})",
          fields.empty() ? "" : ",", fields),
      "config.json"));
}

TEST(Gpt2Test, ASilentConfig) {
  const DecoderSpec spec = Gpt2();
  EXPECT_TRUE(spec.transposed && spec.tied_head && spec.norm_bias && spec.qkv_bias);
  EXPECT_TRUE(spec.attention_out_bias && spec.mlp.bias);
  EXPECT_EQ(spec.mlp.intermediate, 64);
  EXPECT_EQ(spec.mlp.activation, ops::Activation::kGeluTanh);
  EXPECT_EQ(spec.first_learned_position, 0);
  EXPECT_EQ(spec.rotary.rotary_dim, 0);
  EXPECT_EQ(Gpt2(R"("n_inner":20)").mlp.intermediate, 20);
  EXPECT_EQ(Geometry(Gpt2(R"("n_positions":99)")).learned_positions, 99);
}

TEST(Gpt2Test, RefusesWhatIsNotBuilt) {
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Gpt2(fmt::format(R"("{}":true)", key)); }),
                HasSubstr(fmt::format("{}: expected false", key)));
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [] { Gpt2(R"("scale_attn_weights":false)"); }),
              HasSubstr("scale_attn_weights: expected true"));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { Gpt2(R"("n_positions":4294967296)"); }),
              HasSubstr("n_positions: expected at most"));
}

}  // namespace
}  // namespace godwit::gpt2_test
