#include "generate/draft_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace godwit::draft_tree_test {
namespace {

using testing::ElementsAre;

// Offers the next four tokens behind every token, the first the likeliest.
class Four : public DraftSource {
 public:
  std::string_view name() const override { return "four"; }
  std::span<const double> Priors() const override { return priors_; }
  void Follow(std::span<const int32_t> /*text*/) override {}
  void Offer(std::span<const int32_t> /*text*/, std::span<const DraftNode> tree, int32_t node,
             std::vector<DraftOffer>& offers) override {
    const int32_t token = tree[node].token;
    for (int32_t i = 3; i >= 0; --i) offers.push_back({10 * token + i, i});
  }

 private:
  std::vector<double> priors_ = {0.4, 0.3, 0.2, 0.1};
};

std::vector<int32_t> TokensOf(const DraftShape& shape, double ms_of_64 = 10) {
  std::vector<std::unique_ptr<DraftSource>> sources;
  sources.push_back(std::make_unique<Four>());
  DraftTree tree(std::move(sources), shape);
  const StepCosts costs = StepCosts::AlongLines({{1, 10}, {64, ms_of_64}});
  const std::vector<int32_t> text = {5};
  tree.Grow(text, costs, {.rows = 64, .depth = 50, .other_rows = 0});
  return {tree.tokens().begin(), tree.tokens().end()};
}

TEST(DraftTree, KeepsWithinItsShape) {
  EXPECT_THAT(TokensOf({.rows = 4}), ElementsAre(5, 50, 51, 52));
  EXPECT_THAT(TokensOf({.depth = 1}), ElementsAre(5, 50, 51, 52, 53));
  EXPECT_THAT(TokensOf({.depth = 3, .children = 1}), ElementsAre(5, 50, 500, 5000));
  EXPECT_EQ(TokensOf({}).size(), DraftShape::kMaxRows);
}

TEST(DraftTree, AFixedShapeIsTakenWhetherItPaysOrNot) {
  const DraftShape fixed{.rows = 64, .depth = 64, .fixed = {3, 1, 2}};
  for (const double ms_of_64 : {10.0, 1000.0}) {
    EXPECT_THAT(TokensOf(fixed, ms_of_64),
                ElementsAre(5, 50, 500, 5000, 5001, 51, 510, 5100, 5101, 52, 520, 5200, 5201));
  }
  EXPECT_THAT(TokensOf({}, 1000), ElementsAre(5));
}

}  // namespace
}  // namespace godwit::draft_tree_test
