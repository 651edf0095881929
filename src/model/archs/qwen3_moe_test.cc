#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::qwen3_moe_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderSpec Moe(const std::string& fields = "") { return SmallSpecOf("qwen3_moe", fields); }

TEST(Qwen3MoeTest, ASilentConfig) {
  const DecoderSpec spec = Moe();
  EXPECT_EQ(spec.mlp.experts, 128);
  EXPECT_EQ(spec.mlp.experts_per_token, 8);
  EXPECT_EQ(spec.mlp.intermediate, 768);
  EXPECT_FALSE(spec.mlp.shares_among_chosen);
  EXPECT_EQ(spec.qk_norm, QkNorm::kHeads);
  EXPECT_THAT(ExpertsOf(spec), ElementsAre(128, 128));
}

TEST(Qwen3MoeTest, SomeLayersAreDense) {
  const std::string layers = R"("num_experts":3,"moe_intermediate_size":6,)";
  const DecoderSpec spec = Moe(layers + R"("decoder_sparse_step":2)");
  EXPECT_THAT(ExpertsOf(spec), ElementsAre(0, 3));
  EXPECT_EQ(KindOf(spec, 0).mlp.intermediate, 10);
  EXPECT_EQ(KindOf(spec, 1).mlp.intermediate, 6);
  EXPECT_EQ(spec.mlp.experts_per_token, 3) << "the usual 8, of which there are not so many";
  EXPECT_THAT(ExpertsOf(Moe(layers + R"("mlp_only_layers":[1,7])")), ElementsAre(3, 0));
  EXPECT_EQ(CountTensors(spec).tensors, std::ssize(WantedTensors(spec)));
  EXPECT_THAT(ExpertsOf(FirstLayers(spec, 1)), ElementsAre(0));
}

TEST(Qwen3MoeTest, ReadsWhatItsVariationsState) {
  EXPECT_EQ(Moe(R"("num_local_experts":9)").mlp.experts, 9);
  EXPECT_TRUE(Moe(R"("norm_topk_prob":true)").mlp.shares_among_chosen);
  EXPECT_THAT(WindowsOf(Moe(R"("use_sliding_window":true,"sliding_window":5)")), ElementsAre(5, 5));
  EXPECT_THAT(WindowsOf(Moe(R"("use_sliding_window":false,"sliding_window":5)")),
              ElementsAre(0, 0));
  for (const char* fields : {R"("num_experts":0)", R"("num_experts":2,"num_experts_per_tok":3)",
                             R"("decoder_sparse_step":0)", R"("mlp_only_layers":[-1])",
                             R"("moe_intermediate_size":0)"}) {
    EXPECT_EQ(ErrorOf([&] { Moe(fields); }).kind(), ErrorKind::kFormat) << fields;
  }
}

}  // namespace
}  // namespace godwit::qwen3_moe_test
