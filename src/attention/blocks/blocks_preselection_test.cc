#include "attention/blocks/blocks_preselection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attention/policies/blocks_test_support.h"

namespace godwit::blocks_preselection_test {
namespace {

constexpr int64_t kHeads = 4, kTokens = 640;

// Preselection among blocks [1, 6): the last 20 tokens before kAnswer share their attention among
// whole blocks.
constexpr int64_t kAnswer = 500;
std::set<int64_t> Preselected(const TestText& text, int64_t layer, int64_t begin, int64_t end) {
  std::vector<double> worth(6);
  for (int64_t t = kAnswer - 20; t < kAnswer; ++t) {
    for (int64_t head = begin; head < end; ++head) {
      const auto scores = text.Scores(layer, head, t, t, KeysIn(0, 6 * 64));
      std::vector<double> masses(6);
      for (size_t key = 0; key < scores.size(); ++key) masses[key / 64] += std::exp(scores[key]);
      const double sum = std::accumulate(masses.begin(), masses.end(), 0.0);
      for (size_t b = 0; b < 6; ++b) worth[b] = std::max(worth[b], masses[b] / sum);
    }
  }
  std::vector<int64_t> order = {1, 2, 3, 4, 5};
  std::ranges::sort(order, [&](int64_t a, int64_t b) { return worth[a] > worth[b]; });
  return {order.begin(), order.begin() + 3};
}

TEST(BlocksPolicyPreselect, TheAnswerSeesWhatTheQuestionChoseAndAllThatCameSince) {
  for (const bool separate : {true, false}) {
    const AttentionGeometry geometry = TestGeometry(kHeads, 2, 12, 8, {0, 0});
    const TestText text(geometry, 611, 13);
    const std::string spec = fmt::format(
        "blocks:local_windows_len=100,second_block_count=4,preselect_block_count=3,"
        "observation_window=20,preselect_block=True,head_select_mode={}",
        separate ? "SEPARATE" : "SHARED");
    for (const int64_t chunk : {1, 40, 611}) {
      const auto out =
          ReadText(*BlocksText(geometry, spec, 400, nullptr, kAnswer), text, 611, chunk);
      for (int64_t t = kAnswer; t < 611; t += t == 546 ? 1 : 23) {
        for (int64_t layer = 0; layer < 2; ++layer) {
          for (int64_t head = 0; head < kHeads; ++head) {
            const int64_t begin = separate ? head / 2 * 2 : 0;
            const auto blocks = Preselected(text, layer, begin, separate ? begin + 2 : kHeads);
            std::vector<SeenKey> keys;
            for (int64_t key = 0; key <= t; ++key) {
              const int64_t block = key / 64;
              if (block == 0 || block >= 6 || blocks.contains(block)) keys.push_back({key, key});
            }
            const auto expected = text.Attend(layer, head, t, t, keys);
            for (int64_t d = 0; d < 12; ++d) {
              ASSERT_NEAR(out[((t * 2 + layer) * kHeads + head) * 12 + d], expected[d], 2e-6)
                  << "token " << t << " layer " << layer << " head " << head;
            }
          }
        }
      }
    }
  }
}

// By votes, the last 20 tokens of the prompt choose, question or not, and only the answer sees less
// than everything. A block below a tile counts for itself.
TEST(BlocksPolicyPreselect, TheAnswerAloneSeesWhatGotTheVotes) {
  const AttentionGeometry geometry = TestGeometry(kHeads, 2, 12, 8, {0, 0});
  const TestText text(geometry, 611, 15);
  struct Way {
    int64_t size, pool;
    bool separate;
  };
  for (const Way& way : {Way{64, 16, true}, Way{16, 4, false}, Way{1, 0, true}, Way{1, 3, false}}) {
    const int64_t size = way.size, pool = way.pool;
    const bool separate = way.separate;
    const int64_t initial = (10 + size - 1) / size, window = 100;
    const int64_t local = (kAnswer - window) / size, count = 64 / size + 2;
    const std::string spec = fmt::format(
        "blocks:block_size={},initial=10,local_windows_len={},second_block_count={},"
        "preselect_block_count={},observation_window=20,preselect_block=True,"
        "preselect_votes=True,pool_tokens={},dense_question=True,head_select_mode={},"
        "representative_type=MEAN",
        size, window, count + (611 - window) / size - local, count, pool,
        separate ? "SEPARATE" : "SHARED");
    // The blocks that heads [begin, end) choose.
    const auto voted = [&](int64_t layer, int64_t begin, int64_t end) {
      std::vector<double> votes(kAnswer);
      for (int64_t t = kAnswer - 20; t < kAnswer; ++t) {
        for (int64_t head = begin; head < end; ++head) {
          auto scores = text.Scores(layer, head, t, t, KeysIn(0, t + 1));
          double sum = 0;
          for (double& score : scores) sum += score = std::exp(score);
          for (size_t key = 0; key < scores.size(); ++key) votes[key] += scores[key] / sum;
        }
      }
      std::vector<std::pair<double, int64_t>> order;
      for (int64_t block = initial; block < local; ++block) {
        double sum = 0;
        for (int64_t p = block * size - pool; p < (block + 1) * size + pool; ++p) {
          if (p >= initial * size && p < local * size) sum += votes[p];
        }
        order.emplace_back(-sum, block);
      }
      std::ranges::sort(order);
      std::set<int64_t> blocks;
      for (const auto& [vote, block] : std::span(order).first(count)) blocks.insert(block);
      return blocks;
    };
    for (const int64_t chunk : {1, 40, 611}) {
      const auto out =
          ReadText(*BlocksText(geometry, spec, 490, nullptr, kAnswer), text, 611, chunk);
      for (const int64_t t : {495, 499, 500, 501, 563, 564, 610}) {
        for (int64_t row = 0; row < 2 * kHeads; ++row) {
          const int64_t layer = row / kHeads, head = row % kHeads;
          const int64_t begin = separate ? head / 2 * 2 : 0;
          std::set<int64_t> blocks;
          if (t >= kAnswer) blocks = voted(layer, begin, separate ? begin + 2 : kHeads);
          std::vector<SeenKey> keys;
          for (int64_t key = 0; key <= t; ++key) {
            const int64_t block = key / size;
            if (t < kAnswer || block < initial || block >= local || blocks.contains(block)) {
              keys.push_back({key, key});
            }
          }
          const auto expected = text.Attend(layer, head, t, t, keys);
          for (int64_t d = 0; d < 12; ++d) {
            ASSERT_NEAR(out[((t * 2 + layer) * kHeads + head) * 12 + d], expected[d], 2e-6)
                << "token " << t << " layer " << layer << " head " << head << " of " << size;
          }
        }
      }
    }
  }
}

// The question of another turn ends elsewhere, so its tokens are read again.
void ExpectAnotherQuestionChoosesAnew(const std::string& more) {
  const AttentionGeometry geometry = TestGeometry(kHeads, 2, 12, 8, {0, 0});
  const TestText text(geometry, kTokens, 14);
  const std::string spec =
      "blocks:local_windows_len=20,second_block_count=2,preselect_block_count=2,"
      "observation_window=20,preselect_block=True" +
      more;
  const auto cache = BlocksText(geometry, spec, 300, nullptr, 420);
  ReadText(*cache, text, 450, 50);
  EXPECT_EQ(cache->RestartPoint(440, 420), 440) << "the same question";
  EXPECT_EQ(cache->RestartPoint(440, 600), 420);
  EXPECT_EQ(cache->RestartPoint(440, 410), 390);
  for (const auto& [length, question_begin, answer] :
       {std::tuple{440, 300, 420}, {420, 300, 600}, {390, 300, 410}, {300, 350, 500}}) {
    const auto fork = cache->Fork();
    fork->Truncate(length);
    fork->SetQuestion(question_begin, answer);
    const auto fresh = BlocksText(geometry, spec, question_begin, nullptr, answer);
    ReadText(*fresh, text, length, 64);
    EXPECT_EQ(ReadText(*fork, text, kTokens, 9), ReadText(*fresh, text, kTokens, 64)) << answer;
  }
  // A question that ends elsewhere chooses other blocks.
  EXPECT_NE(ReadText(*BlocksText(geometry, spec, 300, nullptr, 420), text, kTokens, 64),
            ReadText(*BlocksText(geometry, spec, 300, nullptr, 430), text, kTokens, 64));
}

TEST(BlocksPolicyPreselect, AnotherQuestionChoosesAnew) {
  ExpectAnotherQuestionChoosesAnew("");
  ExpectAnotherQuestionChoosesAnew(",preselect_votes=True,dense_question=True");
}

}  // namespace
}  // namespace godwit::blocks_preselection_test
