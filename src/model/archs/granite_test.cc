#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GraniteTest, Factors) {
  const DecoderSpec spec =
      SmallSpecOf("granite", R"("embedding_multiplier":12,"residual_multiplier":0.25,)"
                             R"("attention_multiplier":0.5,"logits_scaling":8)");
  EXPECT_EQ(spec.embedding_scale, 12);
  EXPECT_EQ(spec.residual_scale, 0.25f);
  EXPECT_EQ(spec.logit_scale, 0.125f);
  EXPECT_EQ(Geometry(spec).shape.scale, 0.5f);
  const DecoderSpec silent = SmallSpecOf("granite");
  EXPECT_EQ(silent.embedding_scale, 1);
  EXPECT_EQ(silent.residual_scale, 1);
  EXPECT_EQ(silent.logit_scale, 1);
  EXPECT_EQ(Geometry(silent).shape.scale, 1) << "as transformers has it";
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { SmallSpecOf("granite", R"("logits_scaling":0)"); }),
              HasSubstr("logits_scaling"));
}

TEST(GraniteTest, OthersHaveNone) {
  EXPECT_THAT(SmallSpecOf("llama").turns_otherwise, ElementsAre());
  EXPECT_EQ(SmallSpecOf("llama").residual_scale, 1);
}

}  // namespace
}  // namespace godwit
