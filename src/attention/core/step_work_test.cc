#include "attention/core/step_work.h"

#include <gtest/gtest.h>

#include <string>

#include "attention/attention_test_support.h"

namespace godwit::step_work_test {
namespace {

constexpr int64_t kTokens = 1100, kQuestion = 1000;

struct Case {
  std::string kv, prefill;
};

// Steps of a text, each with the work that was foretold and what the step then did.
template <typename Check>
void ForSteps(const AttentionGeometry& geometry, const Case& how, int64_t chunk, Check check) {
  const PolicyOptions options{
      .spec = how.kv, .kv_type = DType::kF32, .context = kTokens, .prefill = how.prefill};
  const auto text = NewText(geometry, options);
  text->SetQuestion(kQuestion);
  const auto policy = MakePolicy(geometry, options);
  policy->SetQuestion({.begin = kQuestion});
  const TestText tokens(geometry, kTokens, 1);
  for (int64_t begin = 0; begin + chunk <= kTokens; begin += chunk) {
    ReadText(*text, tokens, begin + chunk, chunk);
    const StepWork work =
        WorkOf(*policy, geometry, text->cache().layout(), begin, chunk, kQuestion);
    check(begin, work, text->Stats());
  }
}

// Chunks that end where a question begins.
TEST(StepWorkTest, KeysOfAChunkAreThoseThatItsRowsMeet) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 8, 8, {0, 64, 0});
  for (const Case& how : {Case{"dense", ""}, Case{"sinks:64+192", ""}, Case{"dense", "window:63"},
                          Case{"dense", "star:block=128,anchor=64"},
                          Case{"dense", "star:block=128,anchor=128,overlap=64"}}) {
    ForSteps(geometry, how, /*chunk=*/50,
             [&](int64_t begin, const StepWork& work, const KvStats& stats) {
               EXPECT_EQ(work.rows, 50);
               const auto met = static_cast<double>(stats.met_keys);
               // A row between two tiles may be the one from which rows see no more.
               EXPECT_NEAR(work.keys, met,
                           how.kv == "dense" && how.prefill.empty() && begin > 64 ? 0 : 0.02 * met)
                   << how.kv << " " << how.prefill << " at " << begin;
               EXPECT_EQ(work.alone_bytes, 0);
             });
  }
}

TEST(StepWorkTest, BytesOfARowAloneAreThoseThatItReads) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 8, 8, {0, 64, 0});
  for (const Case& how : {Case{"dense", ""}, Case{"sinks:4+100", ""}, Case{"dense", "window:63"},
                          Case{"dense", "star:block=128,anchor=64"}}) {
    ForSteps(geometry, how, /*chunk=*/1,
             [&](int64_t begin, const StepWork& work, const KvStats& stats) {
               EXPECT_EQ(work.keys, 0);
               EXPECT_EQ(work.alone_bytes, static_cast<double>(stats.read_bytes))
                   << how.kv << " " << how.prefill << " at " << begin;
             });
  }
}

// Blocks are read as dense. A row of the question attends alone, and reads the index, too.
TEST(StepWorkTest, AQuestionAboutBlocksAttendsRowByRow) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 8, 8, {0});
  double dense_keys = 0;
  ForSteps(geometry, {"dense", ""}, 100,
           [&](int64_t, const StepWork& work, const KvStats&) { dense_keys += work.keys; });
  double keys = 0, alone = 0;
  ForSteps(geometry,
           {"blocks:block_size=64,initial=1,local_windows_len=128,second_block_count=2,dense_layer_"
            "num=0",
            ""},
           100, [&](int64_t begin, const StepWork& work, const KvStats& stats) {
             keys += work.keys;
             if (begin < kQuestion) {
               EXPECT_EQ(work.keys, static_cast<double>(stats.met_keys)) << begin;
               EXPECT_EQ(work.alone_bytes, 0);
               return;
             }
             EXPECT_EQ(work.keys, 0);
             alone = work.alone_bytes;
             const auto read = static_cast<double>(stats.read_bytes);
             EXPECT_NEAR(alone, read, 0.1 * read) << "the index may hold a block more or less";
           });
  EXPECT_GT(alone, 0);
  EXPECT_LT(keys, dense_keys);
}

// A model's own choice scores all keys, whatever it then sees.
TEST(StepWorkTest, KeysOfAnIndexCount) {
  const AttentionGeometry plain = TestGeometry(4, 1, 8, 8, {0, 0});
  const AttentionGeometry indexed = WithKeyIndex(plain, /*best=*/70);
  const auto work_of = [](const AttentionGeometry& geometry, int64_t begin, int64_t rows) {
    const PolicyOptions options{.spec = "dense", .kv_type = DType::kF32, .context = kTokens};
    return WorkOf(*MakePolicy(geometry, options), geometry, LayoutOf(geometry, DType::kF32), begin,
                  rows, /*question_begin=*/0);
  };
  // 64 rows that see 70 keys each in two layers, and score 641 to 704 in one, by 3 heads of 9.
  EXPECT_DOUBLE_EQ(work_of(indexed, 640, 64).keys,
                   2 * 64 * 70 + 64 * 672.5 * (3 * 9) / (4.0 * (8 + 8)));
  EXPECT_EQ(work_of(indexed, 0, 64).keys, work_of(plain, 0, 64).keys);
  EXPECT_GT(work_of(indexed, 999, 1).alone_bytes, 0);
}

}  // namespace
}  // namespace godwit::step_work_test
