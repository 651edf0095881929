#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderSpec Small(const std::string& type, const std::string& fields = "") {
  return SmallSpec(
      fmt::format(R"("model_type":"{}"{}{})", type, fields.empty() ? "" : ",", fields));
}

TEST(GraniteTest, Factors) {
  const DecoderSpec spec =
      Small("granite", R"("embedding_multiplier":12,"residual_multiplier":0.25,)"
                       R"("attention_multiplier":0.5,"logits_scaling":8)");
  EXPECT_EQ(spec.embedding_scale, 12);
  EXPECT_EQ(spec.residual_scale, 0.25f);
  EXPECT_EQ(spec.logit_scale, 0.125f);
  EXPECT_EQ(Geometry(spec).shape.scale, 0.5f);
  const DecoderSpec silent = Small("granite");
  EXPECT_EQ(silent.embedding_scale, 1);
  EXPECT_EQ(silent.residual_scale, 1);
  EXPECT_EQ(silent.logit_scale, 1);
  EXPECT_EQ(Geometry(silent).shape.scale, 1) << "as transformers has it";
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { Small("granite", R"("logits_scaling":0)"); }),
              HasSubstr("logits_scaling"));
}

TEST(GraniteTest, OthersHaveNone) {
  EXPECT_THAT(Small("llama").turns_otherwise, ElementsAre());
  EXPECT_EQ(Small("llama").residual_scale, 1);
}

}  // namespace
}  // namespace godwit
