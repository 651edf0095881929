#include "bench/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "model/loader.h"
#include "model/shape_test_support.h"
#include "model/synthetic_weights.h"
#include "ops/kv_layout.h"

namespace godwit::bench::restore_test {
namespace {

TEST(Restore, SavesGoesOnAndLeavesNothing) {
  const DecoderSpec spec = SmallShape();
  ThreadPool pool(1);
  const auto model = LoadDecoder(spec, *SyntheticWeights(spec, DType::kBF16), pool, {});
  const TempFolder folder;
  for (const char* kv : {"dense", "blocks", "sinks:4+60"}) {
    const SuiteOptions options{.cases = {{.predict_tokens = 1, .depth_tokens = 0, .threads = 1},
                                         {.predict_tokens = 1, .depth_tokens = 200, .threads = 1},
                                         {.predict_tokens = 1, .depth_tokens = 320, .threads = 1}},
                               .policy = {.spec = kv, .kv_type = DType::kBF16},
                               .chunk_tokens = 64,
                               .isa = &kernels::SelectIsa(""),
                               .rounds = 2};
    int64_t steps = 0;
    const auto results =
        MeasureRestore(*model, options, folder.path(), [&](int64_t, int64_t total) {
          ++steps;
          EXPECT_EQ(total, 4);
        });
    EXPECT_EQ(steps, 4);
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].tokens, 192);
    EXPECT_EQ(results[1].tokens, 320);
    for (const RestoreResult& result : results) {
      EXPECT_TRUE(result.logits_agree) << kv;
      EXPECT_GT(result.bytes, 0);
      for (const double seconds : {result.save, result.disk, result.first_token_cold,
                                   result.first_token_warm, result.restore_cold}) {
        EXPECT_GT(seconds, 0);
      }
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

TEST(Restore, NothingToSaveIsRefused) {
  const DecoderSpec spec = SmallShape();
  ThreadPool pool(1);
  const auto model = LoadDecoder(spec, *SyntheticWeights(spec, DType::kBF16), pool, {});
  EXPECT_THAT(ErrorOf(ErrorKind::kInput,
                      [&] {
                        MeasureRestore(*model, {.cases = {{.prompt_tokens = 5, .threads = 1}}},
                                       "/tmp", [](int64_t, int64_t) {});
                      }),
              testing::HasSubstr("nothing to save"));
}

}  // namespace
}  // namespace godwit::bench::restore_test
