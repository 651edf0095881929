#include "bench/work.h"

#include <gtest/gtest.h>

#include "model/shapes.h"

namespace godwit::bench::work_test {
namespace {

// The 1b shape by hand. In a layer q and o are 2048 x 2048, k and v 512 x 2048, gate, up and down
// 8192 x 2048:
//   (2 * 2048 + 2 * 512 + 3 * 8192) * 2048 = 60,817,408; of 16 layers 973,078,528
// The head is 32000 x 2048 = 65,536,000.
TEST(Work, WeightsOfThe1bShape) {
  const DecoderSpec spec = FindShape("1b");
  EXPECT_EQ(LayerWeights(spec), 973'078'528);
  EXPECT_EQ(HeadWeights(spec), 65'536'000);
}

// Token i of 512 sees i + 1 keys: 512 * 513 / 2 = 131,328, in 16 layers 2,101,248, and as many in
// each of 8 KV heads. In 32 heads each costs a product of 64 with its key and one with its value:
// 4,096 multiply-adds.
//   512 * 973,078,528 + 65,536,000 + 4,096 * 2,101,248 = 506,888,454,144
TEST(Work, APromptOf512) {
  EXPECT_EQ(MultiplyAdds(FindShape("1b"), 512, 1, 8 * 2'101'248), 506'888'454'144);
}

// A latent key has 576 numbers for its score, and 512 of them are its value. In 16 heads that is
// 17,408 multiply-adds.
TEST(Work, AKeyOfLatentAttention) {
  EXPECT_EQ(MultiplyAdds(FindShape("mla"), 0, 0, 100), 1'740'800);
}

}  // namespace
}  // namespace godwit::bench::work_test
