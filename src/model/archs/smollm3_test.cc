#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::smollm3_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SmolLm3Test, LayersWithoutPositions) {
  const auto dims = [](const std::string& fields) {
    return RotaryDimsOf(SmallSpecOf("smollm3", fields));
  };
  EXPECT_THAT(dims(""), ElementsAre(4, 4)) << "every fourth";
  EXPECT_THAT(dims(R"("no_rope_layer_interval":2)"), ElementsAre(4, 0));
  EXPECT_THAT(dims(R"("no_rope_layers":[0,1])"), ElementsAre(0, 4));
  const DecoderSpec spec = SmallSpecOf("smollm3");
  EXPECT_EQ(spec.rotary.theta, 2e6);
  EXPECT_TRUE(spec.tied_head);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { dims(R"("no_rope_layers":[1])"); }),
              HasSubstr("no_rope_layers: expected one entry for each of 2 layers"));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { dims(R"("no_rope_layers":[1,2])"); }),
              HasSubstr("no_rope_layers[1]"));
}

TEST(SmolLm3Test, WindowsAreThoseOfLayersWithoutPositions) {
  const std::string fields = R"("sliding_window":7,"no_rope_layers":[0,1],"use_sliding_window":)";
  EXPECT_THAT(WindowsOf(SmallSpecOf("smollm3", fields + "true")), ElementsAre(7, 0));
  EXPECT_THAT(WindowsOf(SmallSpecOf("smollm3", fields + "false")), ElementsAre(0, 0));
  EXPECT_THAT(
      WindowsOf(SmallSpecOf(
          "smollm3", fields + R"(true,"layer_types":["full_attention","sliding_attention"])")),
      ElementsAre(0, 7));
}

}  // namespace
}  // namespace godwit::smollm3_test
