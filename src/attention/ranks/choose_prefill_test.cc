#include "attention/ranks/choose_prefill.h"

#include <gtest/gtest.h>

#include "attention/attention_test_support.h"
#include "dist/local.h"

namespace godwit::choose_prefill_test {
namespace {

// The shape of an 8B model: 2,112 bytes for a key and value in int8.
AttentionGeometry Large(std::vector<int64_t> windows = {0, 0}) {
  return TestGeometry(32, 8, 128, 128, std::move(windows));
}

// A host with 5 Tops, as in docs/papers/ring-attention.md.
RankSpeed WithLink(double gbit) {
  return {.best_link = 1e9 / 8 * gbit,
          .worst_link = 1e9 / 8 * gbit,
          .key_seconds = 4.0 * 32 * 128 / 5e12};
}

constexpr const char* kStar = "star:block=32768,anchor=32768,by-speed";

class ChoosePrefillTest : public testing::Test {
 protected:
  std::string Choose(std::vector<RankSpeed> speeds, const AttentionGeometry& geometry = Large(),
                     const std::string& kv = "dense", DType kv_type = DType::kI8,
                     int64_t context = 1 << 20) {
    return ChoosePrefill(geometry,
                         {.kv_type = kv_type,
                          .prefill = "auto",
                          .ranks = world_.Rank(0),
                          .rank_speeds = std::move(speeds)},
                         PolicyFactsOf(kv), context);
  }

 private:
  LocalWorld world_{3};
};

TEST_F(ChoosePrefillTest, AChunkThatIsReceivedInLessTimeThanItTakes) {
  const RankSpeed fast = WithLink(10);
  EXPECT_EQ(Choose({fast, fast, fast}), "ring:chunk=2048");         // 516 would do
  EXPECT_EQ(Choose({fast, WithLink(2), fast}), "ring:chunk=4096");  // 2,580 would do
  EXPECT_EQ(Choose({fast, WithLink(1), fast}), "ring:chunk=8192");  // 5,156 would do
  // bf16 takes twice the bytes.
  EXPECT_EQ(Choose({WithLink(2), fast, fast}, Large(), "dense", DType::kBF16), "ring:chunk=8192");
  // All ranks wait for the slowest rank, so keys may arrive later, too.
  RankSpeed slow = WithLink(1);
  slow.key_seconds *= 4;
  EXPECT_EQ(Choose({fast, slow, fast}), "ring:chunk=2048");
  EXPECT_EQ(Choose({}), "ring:chunk=2048");
}

TEST_F(ChoosePrefillTest, AStarWhereNoChunkIsLargeEnough) {
  const std::vector<RankSpeed> speeds = {WithLink(0.1), WithLink(10), WithLink(10)};
  EXPECT_EQ(Choose(speeds), kStar);
  // A star has at least three blocks, and one for each rank.
  const auto of = [&](int64_t context) {
    return Choose(speeds, Large(), "dense", DType::kI8, context);
  };
  EXPECT_EQ(of(2 * 32768), "ring:chunk=8192");
  EXPECT_EQ(of(2 * 32768 + 1), kStar);
  // Models with windows keep the ring. The blocks policy always takes the star.
  EXPECT_EQ(Choose(speeds, Large({0, 4096})), "ring:chunk=8192");
  EXPECT_EQ(Choose({WithLink(10), WithLink(10), WithLink(10)}, Large(), "blocks"), kStar);
}

TEST_F(ChoosePrefillTest, ExplicitPrefillAndASingleRankStayUnchanged) {
  EXPECT_EQ(ChoosePrefill(Large(), {.prefill = "window:7"}, {}, 1), "window:7");
  EXPECT_EQ(ChoosePrefill(Large(), {.prefill = "auto"}, {}, 1), "");
  LocalWorld world(1);
  EXPECT_EQ(ChoosePrefill(Large(), {.prefill = "auto", .ranks = world.Rank(0)}, {}, 1), "");
}

TEST_F(ChoosePrefillTest, PolicyNamesTheChosenPrefill) {
  LocalWorld world(2);
  PolicyOptions options{.context = 1000, .prefill = "auto", .ranks = world.Rank(1)};
  EXPECT_EQ(MakePolicy(Large(), options)->facts().name, "dense, read by ring:chunk=2048");
  options.ranks = nullptr;
  EXPECT_EQ(MakePolicy(Large(), options)->facts().name, "dense");
}

}  // namespace
}  // namespace godwit::choose_prefill_test
