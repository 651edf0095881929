#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model_test_support.h"

namespace godwit::exaone_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// A model of 4 layers.
DecoderSpec Exaone(const std::string& fields = "") {
  return DescribeModel(HfConfig::Parse(
      R"({"model_type":"exaone4","vocab_size":11,"hidden_size":16,"num_hidden_layers":4,)"
      R"("num_attention_heads":4,"intermediate_size":10,"max_position_embeddings":64)" +
          (fields.empty() ? "" : "," + fields) + "}",
      "config.json"));
}

TEST(Exaone4Test, ASilentConfig) {
  const DecoderSpec spec = Exaone();
  EXPECT_TRUE(spec.output_norms && !spec.input_norms);
  EXPECT_EQ(spec.qk_norm, QkNorm::kHeads);
  EXPECT_EQ(spec.norm_epsilon, 1e-5f);
  EXPECT_THAT(WindowsOf(spec), ElementsAre(4096, 4096, 4096, 0));
  EXPECT_THAT(RotaryDimsOf(spec), ElementsAre(4, 4, 4, 0));
}

TEST(Exaone4Test, LayersWithoutAWindowHaveNoPositions) {
  EXPECT_THAT(RotaryDimsOf(Exaone(R"("sliding_window_pattern":2)")), ElementsAre(4, 0, 4, 0));
  EXPECT_THAT(WindowsOf(Exaone(R"("sliding_window_pattern":"LLLG","sliding_window":9)")),
              ElementsAre(9, 9, 9, 0));
  const DecoderSpec whole = Exaone(R"("sliding_window":null,"sliding_window_pattern":null)");
  EXPECT_THAT(WindowsOf(whole), Each(0));
  EXPECT_THAT(RotaryDimsOf(whole), Each(4)) << "all have them, where no layer has a window";
  EXPECT_EQ(ErrorOf([] { Exaone(R"("sliding_window_pattern":"LG")"); }).kind(), ErrorKind::kFormat);
  EXPECT_EQ(ErrorOf([] { Exaone(R"("sliding_window_pattern":0)"); }).kind(), ErrorKind::kFormat);
}

}  // namespace
}  // namespace godwit::exaone_test
