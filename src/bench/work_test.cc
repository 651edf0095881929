#include "bench/work.h"

#include <gtest/gtest.h>

#include "bench/shapes.h"

namespace godwit::bench {
namespace {

// The 1b shape by hand. A layer: q and o are 2048 x 2048, k and v 512 x 2048, gate, up and down
// 8192 x 2048:
//   (2 * 2048 + 2 * 512 + 3 * 8192) * 2048 = 60,817,408; of 16 layers 973,078,528
// The head is 32000 x 2048 = 65,536,000.
TEST(Work, WeightsOfThe1bShape) {
  const DecoderSpec spec = FindShape("1b");
  EXPECT_EQ(LayerWeights(spec), 973'078'528);
  EXPECT_EQ(HeadWeights(spec), 65'536'000);
}

// Token i of 512 sees i + 1 keys: 512 * 513 / 2 = 131,328, in 16 layers 2,101,248. Each costs a
// product of 64 with its key and one with its value in 32 heads: 4,096 multiply-adds.
//   512 * 973,078,528 + 65,536,000 + 4,096 * 2,101,248 = 506,888,454,144
TEST(Work, APromptOf512) {
  const DecoderSpec spec = FindShape("1b");
  EXPECT_EQ(SeenKeys(spec, {0, 512}, 512), 2'101'248);
  EXPECT_EQ(MultiplyAdds(spec, {0, 512}, 512, 1), 506'888'454'144);
}

// At depth 16384, 128 tokens see 128 * 16384 + 128 * 129 / 2 = 2,105,408 keys in a layer.
TEST(Work, DecodingAtDepth) {
  const DecoderSpec spec = FindShape("1b");
  const KeptTokens kept{16384, 16384 + 128};
  EXPECT_EQ(SeenKeys(spec, kept, 128), 16 * 2'105'408);
}

// sinks:4+60 once it forgets: every token sees 64 others and itself.
TEST(Work, APolicyThatForgetsReadsNoMore) {
  const DecoderSpec spec = FindShape("1b");
  EXPECT_EQ(SeenKeys(spec, {64, 64}, 10), 16 * 10 * 65);
  // On its way there: 63 + 1, 64 + 1, 64 + 1.
  EXPECT_EQ(SeenKeys(spec, {63, 64}, 3), 16 * (64 + 65 + 65));
}

TEST(Work, AModelsOwnWindowBoundsWhatALayerSees) {
  DecoderSpec spec = FindShape("1b");
  spec.windows[3] = 100;
  EXPECT_EQ(SeenKeys(spec, {1000, 1001}, 1), 15 * 1001 + 100);
}

}  // namespace
}  // namespace godwit::bench
