#include "model/weight_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "base/test_support.h"
#include "dist/local.h"
#include "model/model_test_support.h"
#include "model/synthetic_weights.h"
#include "tests/hybrid_model.h"

namespace godwit::weight_share_test {
namespace {

using testing::HasSubstr;

// The loaded shares of all ranks.
std::vector<std::unique_ptr<Decoder>> Shares(LocalWorld& world, int ranks, const DecoderSpec& spec,
                                             DType dtype, std::optional<DType> storage = {}) {
  ThreadPool pool(2);
  std::vector<std::unique_ptr<Decoder>> shares;
  for (int rank = 0; rank < ranks; ++rank) {
    shares.push_back(
        LoadDecoder(spec, *SyntheticWeights(spec, dtype), pool, {}, storage, world.Rank(rank)));
  }
  return shares;
}

std::vector<std::vector<float>> LogitsOnRanks(const std::vector<std::unique_ptr<Decoder>>& shares,
                                              const std::vector<int32_t>& tokens) {
  std::vector<std::vector<float>> logits(shares.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    threads.emplace_back([&, rank] { logits[rank] = LogitsOf(*shares[rank], tokens); });
  }
  for (std::thread& thread : threads) thread.join();
  return logits;
}

// Wide enough for whole panels of packed weights on each rank.
DecoderSpec WideModel() {
  return DescribeModel(HfConfig::Parse(
      R"({"model_type": "llama", "hidden_size": 512, "intermediate_size": 2048,
          "num_hidden_layers": 1, "num_attention_heads": 8, "num_key_value_heads": 4,
          "vocab_size": 4096, "max_position_embeddings": 4096})",
      "the wide model"));
}

TEST(WeightShare, TakesItsPartOfTheMemory) {
  const DecoderSpec spec = WideModel();
  ThreadPool pool(2);
  for (const std::optional<DType> storage : {std::optional(DType::kBF16), {DType::kI8}}) {
    const auto whole = LoadDecoder(spec, *SyntheticWeights(spec, DType::kBF16), pool, {}, storage);
    LocalWorld world(4);
    int64_t sum = 0;
    for (const auto& share : Shares(world, 4, spec, DType::kBF16, storage)) {
      EXPECT_LE(share->weight_bytes(), whole->weight_bytes() * 26 / 100);
      sum += share->weight_bytes();
    }
    EXPECT_NEAR(static_cast<double>(sum) / static_cast<double>(whole->weight_bytes()), 1, 0.01);
  }
}

// The bytes are known before anything is loaded.
TEST(WeightShare, IsCountedAsItIsLoaded) {
  const DecoderSpec spec = WideModel();
  const auto source = SyntheticWeights(spec, DType::kBF16);
  ThreadPool pool(2);
  for (const int parts : {1, 2}) {
    const WeightShare share = TakeShare(spec, ResolveTensors(spec, *source), parts - 1, parts);
    const auto ranks = parts == 1 ? nullptr : std::make_unique<LocalWorld>(parts);
    const auto loaded = LoadDecoder(spec, *source, pool, {}, DType::kI8,
                                    ranks == nullptr ? nullptr : ranks->Rank(parts - 1));
    EXPECT_EQ(LoadedBytes(share.tensors, DType::kI8), loaded->weight_bytes());
    EXPECT_EQ(share.spec.heads, loaded->spec().heads);
  }
}

// Heads, columns and tokens that do not divide evenly.
TEST(WeightShare, PartsMayDifferInSize) {
  const DecoderSpec spec =
      SmallSpec(R"("model_type":"llama","num_key_value_heads":1,"head_dim":4)");
  LocalWorld world(3);
  const auto shares = Shares(world, 3, spec, DType::kF32);
  std::vector<int64_t> heads, columns;
  for (const auto& share : shares) {
    heads.push_back(share->spec().heads);
    columns.push_back(share->spec().mlp.intermediate);
    EXPECT_EQ(share->spec().kv_heads, 1);
    EXPECT_EQ(share->spec().vocab_size, 11);
  }
  EXPECT_THAT(heads, testing::ElementsAre(1, 1, 2));
  EXPECT_THAT(columns, testing::ElementsAre(3, 3, 4));
  const auto logits = LogitsOnRanks(shares, {1, 10, 3, 5});
  ThreadPool pool(1);
  const auto alone = LoadDecoder(spec, *SyntheticWeights(spec, DType::kF32), pool, {});
  const auto expected = LogitsOf(*alone, {1, 10, 3, 5});
  for (const auto& of_rank : logits) {
    EXPECT_EQ(of_rank, logits[0]);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(of_rank[i], expected[i], 1e-5);
  }
}

TEST(WeightShare, RecurrentLayersAreCutByChannels) {
  const DecoderSpec spec = HybridSpec();
  LocalWorld world(3);
  const auto shares = Shares(world, 3, spec, DType::kF32, DType::kF32);
  EXPECT_EQ(KindOf(shares[0]->spec(), 1).sum.width, 6);
  EXPECT_EQ(KindOf(shares[2]->spec(), 1).sum.width, 7);
  EXPECT_EQ(KindOf(shares[0]->spec(), 2).convolution.width, 8);
  const ops::DeltaNetShape& delta = KindOf(shares[0]->spec(), 3).delta.shape;
  EXPECT_EQ(delta.key_heads, 1);
  EXPECT_EQ(delta.value_heads, 2);
  const ops::MatrixStateShape& mamba = KindOf(shares[0]->spec(), 4).mamba.shape;
  EXPECT_EQ(mamba.key_heads, 1);
  EXPECT_EQ(mamba.value_heads, 2);
  EXPECT_EQ(KindOf(shares[0]->spec(), 6).delta.shape.decays(), 4);
  EXPECT_EQ(Geometry(shares[0]->spec()).states.floats, mamba.state_floats());
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 64; ++i) tokens.push_back(i);
  const auto logits = LogitsOnRanks(shares, tokens);
  const auto expected = LogitsOf(*HybridDecoder(), tokens);
  for (const auto& of_rank : logits) {
    EXPECT_EQ(of_rank, logits[0]);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(of_rank[i], expected[i], 1e-4);
  }
}

// Heads of one group are cut where no norm joins them.
TEST(WeightShare, HeadsOfAGroupAreCutUnlessANormJoinsThem) {
  const auto with = [](const std::string& fields) {
    return SmallSpecOf("falcon_h1",
                       R"("mamba_d_ssm":36,"mamba_n_heads":6,"mamba_d_state":5)" + fields);
  };
  const DecoderSpec spec = with("");
  LocalWorld world(4);
  const auto shares = Shares(world, 4, spec, DType::kF32, DType::kF32);
  EXPECT_EQ(shares[0]->spec().mamba.shape.value_heads, 1);
  EXPECT_EQ(shares[1]->spec().mamba.shape.value_heads, 2);
  EXPECT_EQ(shares[1]->spec().mamba.shape.key_heads, 1);
  const auto logits = LogitsOnRanks(shares, {1, 10, 3, 5});
  ThreadPool pool(1);
  const auto alone = LoadDecoder(spec, *SyntheticWeights(spec, DType::kF32), pool, {});
  const auto expected = LogitsOf(*alone, {1, 10, 3, 5});
  for (const auto& of_rank : logits) {
    EXPECT_EQ(of_rank, logits[0]);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(of_rank[i], expected[i], 1e-5);
  }
  const DecoderSpec normed = with(R"(,"mamba_rms_norm":true)");
  const auto source = SyntheticWeights(normed, DType::kF32);
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [&] { TakeShare(normed, ResolveTensors(normed, *source), 0, 2); }),
              HasSubstr("normalises the results of all heads of a recurrent layer together"));
}

TEST(WeightShare, RefusesMoreRanksThanThereAreThings) {
  const auto refusal = [](const DecoderSpec& spec, int parts) {
    const auto source = SyntheticWeights(spec, DType::kF32);
    return ErrorOf(ErrorKind::kUnsupported,
                   [&] { TakeShare(spec, ResolveTensors(spec, *source), 0, parts); });
  };
  EXPECT_THAT(refusal(SmallLlama(), 3), HasSubstr("has 4 query heads for 2 KV heads"));
  EXPECT_THAT(
      refusal(SmallSpecOf("mixtral", R"("num_local_experts":3,"num_experts_per_tok":2)"), 4),
      HasSubstr("has 3 experts in a layer"));
  DecoderSpec hybrid = HybridSpec();
  hybrid.heads = hybrid.kv_heads = 32;
  ChangeLayers(hybrid, [](int64_t, LayerKind& kind) { kind.kv_heads = 32; });
  EXPECT_THAT(refusal(hybrid, 21), HasSubstr("has 20 channels in recurrent layers"));
}

}  // namespace
}  // namespace godwit::weight_share_test
