#include "attention/policies/near_on_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/attention_test_support.h"
#include "base/test_support.h"

namespace godwit::near_on_gpu_test {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<AttentionPolicy> Make(PolicyOptions options,
                                      const AttentionGeometry& geometry = TestGeometry(4, 2, 12, 12,
                                                                                       {0, 9})) {
  options.context = 5000;
  return MakePolicy(geometry, options);
}

TEST(NearOnGpuTest, HasAllTokensWhereNothingTellsAQuestionFromItsContext) {
  const auto policy = Make({.gpu_window = 128});
  EXPECT_EQ(policy->near_on_gpu().tiles, (ops::NearTiles{.sinks = 0, .window = 2}));
  policy->SetQuestion({.begin = 70, .answer = 80});
  EXPECT_EQ(policy->near_on_gpu().from, 0);
  EXPECT_EQ(policy->facts().name, "dense, 128 tokens on a GPU");
  EXPECT_EQ(policy->facts().reading, policy->facts().name) << "caches are told apart";
  EXPECT_TRUE(policy->facts().shows_all);
  EXPECT_EQ(Make({})->near_on_gpu().tiles, ops::NearTiles());
}

TEST(NearOnGpuTest, LeavesTheContextWhatItIs) {
  const auto policy = Make({.spec = "blocks", .gpu_window = 1024});
  EXPECT_EQ(policy->near_on_gpu().tiles, (ops::NearTiles{.sinks = 1, .window = 15}));
  policy->SetQuestion({.begin = 70, .answer = 80});
  EXPECT_EQ(policy->near_on_gpu().from, 70);
  EXPECT_EQ(policy->Fork()->near_on_gpu().from, 70);
  EXPECT_EQ(policy->facts().reading, "dense");
  EXPECT_EQ(policy->facts().name, "blocks, 1024 tokens on a GPU");
  EXPECT_THAT(policy->facts().explanation, HasSubstr("a token of the question or the answer sees"));
}

TEST(NearOnGpuTest, BeginsBehindAContextThatIsReadInAnotherWay) {
  for (const std::string prefill : {"gpu", "star:block=100"}) {
    const auto policy = Make({.prefill = prefill, .gpu_window = 64});
    policy->SetQuestion({.begin = 70, .answer = 80});
    EXPECT_EQ(policy->near_on_gpu().from, 70);
    EXPECT_EQ(policy->near_on_gpu().tiles.window, 1);
    EXPECT_EQ(policy->facts().reading, Make({.prefill = prefill})->facts().reading);
  }
}

TEST(NearOnGpuTest, TakesNoMoreThanEveryTokenSees) {
  EXPECT_EQ(Make({.spec = "blocks", .gpu_window = 1088})->near_on_gpu().tiles,
            (ops::NearTiles{.sinks = 1, .window = 16}));
  EXPECT_EQ(Make({.spec = "blocks", .gpu_window = 64})->near_on_gpu().tiles,
            (ops::NearTiles{.sinks = 0, .window = 1}))
      << "at least the token itself";
  EXPECT_EQ(ErrorOf(ErrorKind::kUnsupported, [] { Make({.spec = "blocks", .gpu_window = 1152}); }),
            "a GPU can attend to tokens that each token sees, and with the KV policy blocks these "
            "are the first 64 and the last 1024, not 1152");
}

TEST(NearOnGpuTest, RefusesWhatGpusDoNotAttendTo) {
  const AttentionGeometry plain = TestGeometry(4, 2, 12, 12, {0});
  const auto refusal = [](const AttentionGeometry& geometry, PolicyOptions options) {
    options.gpu_window = 64;
    return ErrorOf(ErrorKind::kUnsupported, [&] { Make(options, geometry); });
  };
  EXPECT_EQ(refusal(plain, {.spec = "sinks:3+20"}),
            "attention to 64 tokens on a GPU needs a policy that keeps every token, found "
            "sinks:3+20");
  for (const DType dtype : {DType::kI8, DType::kI8I4, DType::kI4}) {
    EXPECT_THAT(refusal(plain, {.kv_type = dtype}), HasSubstr("f32, f16 or bf16, found "));
  }
  EXPECT_THAT(refusal(WithAlibi(plain, /*in_bf16=*/false), {}), HasSubstr("ALiBi"));
  const std::string needs =
      "attention to 64 tokens on a GPU needs a model whose layers have equal heads and keys of "
      "their own, no chunks and no index of keys";
  EXPECT_EQ(refusal(InChunks(TestGeometry(4, 2, 12, 12, {0, 9})), {}), needs);
  EXPECT_EQ(refusal(WithReaders(plain, {1}), {}), needs);
  for (const int64_t tokens : {int64_t{-64}, int64_t{1}, int64_t{100}}) {
    EXPECT_EQ(ErrorOf(ErrorKind::kInput, [&] { Make({.gpu_window = tokens}); }),
              fmt::format("a GPU attends to a multiple of 64 tokens, found {}", tokens));
  }
}

}  // namespace
}  // namespace godwit::near_on_gpu_test
