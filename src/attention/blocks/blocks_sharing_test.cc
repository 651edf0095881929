#include "attention/blocks/blocks_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "attention/policies/blocks_test_support.h"

namespace godwit::blocks_sharing_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 640;

// A shared choice is remembered as long as a text may go back behind its token. A text that goes
// back farther goes to a token that chooses.
TEST(BlocksPolicySteps, TruncateReachesBackToRememberedChoices) {
  const std::string spec =
      "blocks:initial=0,local_windows_len=1,second_block_count=1,token_step=50,layer_step=2";
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, kTokens, 9), other(geometry, kTokens, 10);
  const auto cache = BlocksText(geometry, spec, 210);
  ReadText(*cache, text, 519, 7);
  // Tokens that choose: 210, where the question begins, 250, 300 and so on.
  const std::pair<int64_t, int64_t> lengths[] = {{519, 519}, {501, 501}, {500, 500}, {460, 460},
                                                 {449, 400}, {299, 250}, {249, 210}, {210, 210},
                                                 {209, 209}, {3, 3}};
  for (const auto& [length, back] : lengths) {
    EXPECT_EQ(cache->RestartPoint(length, INT64_MAX), back) << length;
    EXPECT_EQ(cache->CanTruncate(length), back == length) << length;
    const auto fork = cache->Fork(), fresh = BlocksText(geometry, spec, 210);
    fork->Truncate(back);
    ReadText(*fresh, text, back, 64);
    EXPECT_EQ(ReadText(*fork, other, kTokens, 9), ReadText(*fresh, other, kTokens, 64)) << length;
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { cache->Truncate(449); }),
              HasSubstr("cannot return to 449 of 519 tokens"));
}

// Each path of a tree has tokens that choose. The text goes on from one of the paths.
TEST(BlocksPolicySteps, APathOfATreeKeepsWhatItsOwnTokensChose) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, kTokens, 11), drafts(geometry, kTokens, 12);
  const std::string spec =
      "blocks:initial=0,local_windows_len=1,second_block_count=2,token_step=4,layer_step=2";
  StepRunner runner;
  for (const int64_t accepted : {9, 19}) {
    const auto cache = BlocksText(geometry, spec), chain = BlocksText(geometry, spec);
    ReadText(*cache, text, 301, 64);
    ReadText(*chain, text, 301, 1);
    StepRows tree{cache.get(), &drafts, RowRange(0, 20), {}};
    for (int32_t row = 0; row < 20; ++row) tree.parents.push_back(row % 10 == 0 ? -1 : row - 1);
    const auto rows = runner.Run({&tree, 1})[0];
    cache->Accept(accepted);
    const auto path = runner.Read(*chain, drafts, RowRange(accepted - 9, accepted + 1), 3);
    EXPECT_TRUE(std::ranges::equal(
        path, std::span(rows).subspan(accepted == 9 ? 0 : path.size(), path.size())))
        << accepted;
    // The path's own choice at 308 serves up to 311.
    EXPECT_EQ(ReadText(*cache, text, 320, 2), ReadText(*chain, text, 320, 5)) << accepted;
  }
}

// A reader of the keys of a layer that chooses for itself chooses by queries of its own, and shares
// them over tokens. A reader of another layer's keys sees what that layer sees.
TEST(BlocksPolicySteps, ReadersChooseAsTheirLayersDo) {
  const AttentionGeometry geometry = WithReaders(TestGeometry(4, 2, 12, 8, {0, 0, 0}), {1, 2, 1});
  const TestText text(geometry, kTokens, 13);
  const std::string begin = "blocks:initial=0,local_windows_len=1,second_block_count=1";
  const auto read = [&](const std::string& spec, const AttentionGeometry& of,
                        const TestText& from) {
    return ReadText(*BlocksText(of, spec, 210), from, kTokens, 33);
  };
  const auto layers = text.WithoutReaders();
  EXPECT_EQ(read(begin + ",token_step=4", geometry, text),
            read(begin + ",token_step=4", WithoutReaders(geometry), layers));
  // Layers 0 and 1 share a choice. Those that read keys change nothing for layers 0, 1 and 2, whose
  // results are the first, third and sixth of seven.
  const AttentionGeometry alone = TestGeometry(4, 2, 12, 8, {0, 0, 0});
  const TestText same(alone, kTokens, 13);
  for (const char* steps : {",layer_step=2", ",layer_step=2,token_step=4"}) {
    const auto all = read(begin + steps, geometry, text),
               layers_alone = read(begin + steps, alone, same);
    const auto size = static_cast<size_t>(ResultSize(alone) / 3);
    for (size_t token = 0; token < kTokens; ++token) {
      for (const auto& [layer, place] : {std::pair<size_t, size_t>{0, 0}, {1, 2}, {2, 5}}) {
        ASSERT_TRUE(
            std::ranges::equal(std::span(all).subspan((token * 7 + place) * size, size),
                               std::span(layers_alone).subspan((token * 3 + layer) * size, size)))
            << steps << " token " << token << " layer " << layer;
      }
    }
    EXPECT_EQ(ReadText(*BlocksText(geometry, begin + steps, 210), text, kTokens, 1), all);
  }
}

}  // namespace
}  // namespace godwit::blocks_sharing_test
