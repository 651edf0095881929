#include "bench/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "model/archs/all.h"
#include "model/loader.h"
#include "model/shape_test_support.h"
#include "model/synthetic_weights.h"
#include "ops/kv_layout.h"
#include "weights/hf_config.h"

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

// Drawn keys leave no states.
TEST(Restore, RecurrentLayersGoOnAsBefore) {
  const DecoderSpec spec = DescribeModel(HfConfig::Parse(
      R"({"model_type": "lfm2", "hidden_size": 64, "intermediate_size": 160, "conv_L_cache": 3,
          "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
          "layer_types": ["conv", "full_attention", "conv"], "block_auto_adjust_ff_dim": false,
          "norm_eps": 1e-5, "vocab_size": 192, "max_position_embeddings": 4096})",
      "small"));
  ThreadPool pool(1);
  const auto model = LoadDecoder(spec, *SyntheticWeights(spec, DType::kBF16), pool, {});
  const TempFolder folder;
  const SuiteOptions options{.cases = {{.predict_tokens = 1, .depth_tokens = 64, .threads = 1},
                                       {.predict_tokens = 1, .depth_tokens = 320, .threads = 1}},
                             .policy = {.kv_type = DType::kBF16},
                             .chunk_tokens = 64,
                             .isa = &kernels::SelectIsa(""),
                             .rounds = 1};
  for (const RestoreResult& result :
       MeasureRestore(*model, options, folder.path(), [](int64_t, int64_t) {})) {
    EXPECT_TRUE(result.logits_agree) << result.tokens;
    EXPECT_LE(result.replayed_tokens, kTileTokens);
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
