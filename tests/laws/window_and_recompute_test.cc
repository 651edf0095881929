// window:W keeps keys and values; recompute reads the last W + 1 tokens anew. In a model of one
// layer keys and values depend on their own token alone, so the two are the same attention. In
// deeper models they differ, because keys still carry evicted tokens.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "eval/recompute.h"
#include "model/archs/all.h"
#include "model/loader.h"
#include "model/synthetic_weights.h"
#include "tests/session_of.h"
#include "weights/hf_config.h"

namespace godwit::window_and_recompute_test {
namespace {

constexpr int64_t kWindow = 12;
constexpr int64_t kTokens = 60;

std::vector<float> LogitsOf(const eval::Reader& reader) {
  std::vector<int32_t> tokens(kTokens);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i * 7 % 50);
  std::vector<float> logits;
  reader.logits(tokens,
                [&](int64_t, std::span<const float> row) {
                  logits.insert(logits.end(), row.begin(), row.end());
                },
                0, {});
  return logits;
}

// The largest difference of a logit, relative to the largest logit.
double Difference(int layers) {
  const DecoderSpec spec = DescribeModel(HfConfig::Parse(
      fmt::format(R"({{"model_type": "llama", "hidden_size": 32, "intermediate_size": 48,
                       "num_hidden_layers": {}, "num_attention_heads": 4, "num_key_value_heads": 2,
                       "vocab_size": 50, "max_position_embeddings": 256}})",
                  layers),
      "test"));
  ThreadPool pool(1);
  const Engine::Impl engine(LoadDecoder(spec, *SyntheticWeights(spec, DType::kF32), pool, {}), spec,
                            nullptr, SpecialTokens{}, {.threads = 1});
  Session window = SessionOf(engine, {.kv = fmt::format("window:{}", kWindow), .kv_type = "f32"});
  Session dense = SessionOf(engine, eval::WindowSession({.kv_type = "f32"}, kWindow + 1));
  const auto streamed = LogitsOf(window);
  const auto read_anew = LogitsOf(eval::Recompute(dense, {.window = kWindow + 1}));
  double difference = 0, largest = 0;
  for (size_t i = 0; i < streamed.size(); ++i) {
    difference = std::max<double>(difference, std::abs(streamed[i] - read_anew[i]));
    largest = std::max<double>(largest, std::abs(read_anew[i]));
  }
  return difference / largest;
}

TEST(WindowAndRecompute, AreTheSameAttentionInOneLayer) { EXPECT_LT(Difference(1), 2e-6); }

TEST(WindowAndRecompute, DifferByWhatDeeperKeysRemember) {
  const double two = Difference(2);
  const double four = Difference(4);
  RecordProperty("two_layers", fmt::format("{:.3f}", two));
  RecordProperty("four_layers", fmt::format("{:.3f}", four));
  EXPECT_GT(two, 1e-4);
  EXPECT_GT(four, 1e-4);
}

}  // namespace
}  // namespace godwit::window_and_recompute_test
