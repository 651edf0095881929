#include "bench/kv_fill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "attention/make_policy.h"
#include "kernels/dispatch.h"
#include "model/loader.h"
#include "model/shape_test_support.h"
#include "model/synthetic_weights.h"
#include "ops/read_keys.h"

namespace godwit::bench::kv_fill_test {
namespace {

class KvFill : public ::testing::Test {
 protected:
  std::unique_ptr<TextCache> NewText(const std::string& spec) const {
    return MakeTextCache(Geometry(spec_), {.spec = spec, .context = 1024});
  }

  std::vector<int32_t> Tokens(int64_t count) const {
    std::vector<int32_t> tokens(count);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 37 % 192);
    return tokens;
  }

  // Reads `count` more tokens and returns their hidden states.
  std::vector<float> Read(TextCache& text, int64_t count) {
    const std::vector<int32_t> tokens = Tokens(count);
    std::vector<float> hidden(count * 64);
    for (int64_t at = 0; at < count; at += 50) {
      const int64_t n = std::min<int64_t>(50, count - at);
      const Segment segment{std::span(tokens).subspan(at, n), &text};
      model_->Forward(exec_, {&segment, 1}, {hidden.data() + at * 64, n, 64, 64});
    }
    return hidden;
  }

  const DecoderSpec spec_ = SmallShape();
  ThreadPool pool_{2};
  Workspace workspace_;
  const Exec exec_{
      .pool = pool_, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
  const std::unique_ptr<Decoder> model_ =
      LoadDecoder(spec_, *SyntheticWeights(spec_, DType::kF32), pool_, {});
  const KvSample sample_{*model_, exec_, Tokens(48)};
};

TEST_F(KvFill, GivesTheStatisticsOfAPrompt) {
  for (const char* spec : {"dense", "sinks:4+60", "window:100"}) {
    const auto filled = NewText(spec);
    const auto computed = NewText(spec);
    for (const int64_t length : {0, 1, 64, 333}) {
      sample_.Extend(*filled, exec_, length, /*chunk_tokens=*/50);
      Read(*computed, length - computed->length());
      EXPECT_EQ(filled->length(), length);
      const KvStats a = filled->Stats(), b = computed->Stats();
      EXPECT_EQ(a.seen, b.seen) << spec;
      EXPECT_EQ(a.kept, b.kept) << spec;
      ASSERT_EQ(a.dropped.size(), b.dropped.size()) << spec;
      for (size_t i = 0; i < a.dropped.size(); ++i) {
        EXPECT_EQ(a.dropped[i].begin, b.dropped[i].begin) << spec;
        EXPECT_EQ(a.dropped[i].end, b.dropped[i].end) << spec;
      }
      EXPECT_EQ(a.bytes, b.bytes) << spec;
    }
  }
}

// States after a filled cache have the size that they have after a prompt, so scores do, too.
TEST_F(KvFill, GivesStatesLikeThoseOfAPrompt) {
  const auto filled = NewText("dense");
  const auto computed = NewText("dense");
  sample_.Extend(*filled, exec_, 300, 50);
  Read(*computed, 300);
  const auto norm = [](const std::vector<float>& x) {
    return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
  };
  const auto a = Read(*filled, 20), b = Read(*computed, 20);
  EXPECT_NE(a, b);
  EXPECT_NEAR(norm(a) / norm(b), 1, 0.1);
}

TEST(KvFillLatent, FillsKeysAlone) {
  const DecoderSpec spec = DescribeModel(HfConfig::Parse(
      R"({"model_type": "deepseek_v2", "hidden_size": 32, "intermediate_size": 20,
          "num_hidden_layers": 2, "first_k_dense_replace": 2, "num_attention_heads": 4,
          "q_lora_rank": null, "kv_lora_rank": 10, "qk_nope_head_dim": 6, "qk_rope_head_dim": 6,
          "v_head_dim": 5, "vocab_size": 51, "max_position_embeddings": 4096})",
      "latent"));
  ThreadPool pool(2);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  const auto model = LoadDecoder(spec, *SyntheticWeights(spec, DType::kF32), pool, {});
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8, 9};
  const KvSample sample(*model, exec, tokens);
  const auto text = MakeTextCache(Geometry(spec), {.kv_type = DType::kBF16, .context = 1024});
  sample.Extend(*text, exec, 200, 50);
  EXPECT_EQ(text->Stats().bytes, 2 * 256 * 16 * 2);  // layers, tokens of whole pages, numbers, bf16
  std::vector<float> hidden(tokens.size() * 32);
  const Segment segment{.tokens = tokens, .text = text.get()};
  model->Forward(exec, {&segment, 1}, {hidden.data(), std::ssize(tokens), 32, 32});
  for (const float x : hidden) ASSERT_TRUE(std::isfinite(x));
}

// The index keys are those of the sample, in layers that have some.
TEST(KvFillLatent, FillsIndexKeys) {
  const DecoderSpec spec = DescribeModel(HfConfig::Parse(
      R"({"model_type": "glm_moe_dsa", "hidden_size": 32, "intermediate_size": 20,
          "num_hidden_layers": 2, "first_k_dense_replace": 2, "num_attention_heads": 4,
          "q_lora_rank": 8, "kv_lora_rank": 10, "qk_nope_head_dim": 6, "qk_rope_head_dim": 6,
          "v_head_dim": 5, "vocab_size": 51, "max_position_embeddings": 4096, "index_n_heads": 2,
          "index_head_dim": 9, "index_topk": 20, "indexer_types": ["full", "shared"]})",
      "indexed"));
  ThreadPool pool(2);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  const auto model = LoadDecoder(spec, *SyntheticWeights(spec, DType::kF32), pool, {});
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8, 9};
  const KvSample sample(*model, exec, tokens);
  const PolicyOptions options{.kv_type = DType::kF32, .context = 1024};
  const auto filled = MakeTextCache(Geometry(spec), options);
  sample.Extend(*filled, exec, 100, 50);
  const auto read = MakeTextCache(Geometry(spec), options);
  std::vector<float> hidden(tokens.size() * 32);
  const Segment segment{.tokens = tokens, .text = read.get()};
  model->Forward(exec, {&segment, 1}, {hidden.data(), std::ssize(tokens), 32, 32});
  // Rotation keeps the last three numbers.
  const auto plain = [](const TextCache& text, int64_t position) {
    std::vector<float> keys(9 * kTileTokens);
    ops::ReadKeys(text.cache().IndexView(0), 9, 0, position / kTileTokens, keys.data(),
                  kTileTokens);
    std::vector<float> last;
    for (int64_t d = 6; d < 9; ++d) last.push_back(keys[d * kTileTokens + position % kTileTokens]);
    return last;
  };
  std::vector<std::vector<float>> of_sample;
  for (int64_t position = 0; position < std::ssize(tokens); ++position) {
    of_sample.push_back(plain(*read, position));
  }
  for (int64_t position = 0; position < 100; ++position) {
    EXPECT_THAT(of_sample, testing::Contains(plain(*filled, position))) << position;
  }
}

TEST_F(KvFill, DoesNotDependOnChunks) {
  const auto one = NewText("dense");
  const auto two = NewText("dense");
  sample_.Extend(*one, exec_, 200, 50);
  for (const int64_t length : {3, 64, 200}) sample_.Extend(*two, exec_, length, 7);
  EXPECT_EQ(Read(*one, 10), Read(*two, 10));
}

}  // namespace
}  // namespace godwit::bench::kv_fill_test
