// Promise 2: the same input gives the same bits, for any threads, chunks and batch.

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/golden/reference.h"
#include "tests/model_runner.h"
#include "tests/on_isas.h"

namespace godwit::same_bits_test {
namespace {

std::vector<int32_t> RandomText(int64_t tokens, int64_t vocab, uint64_t seed) {
  std::vector<int32_t> text;
  for (int64_t i = 0; i < tokens; ++i) {
    text.push_back(static_cast<int32_t>(RandomBits(seed, 0, i, 0) % static_cast<uint64_t>(vocab)));
  }
  return text;
}

struct Case {
  std::string model;
  std::string kv;
  DType kv_type;
  std::optional<DType> weights = std::nullopt;  // none: the golden's own
  bool int8_products = false;
};

// The checkpoint of a case, and how it is run.
class Model {
 protected:
  explicit Model(const Case& one)
      : one_(one),
        runner_(GoldenRoot() / one.model,
                one.weights ? one.weights : GoldenOf(one.model).Weights()) {}

  RunOptions Options(const std::string& isa) const {
    return {.isa = isa,
            .kv = one_.kv,
            .kv_type = one_.kv_type,
            .int8_products = one_.int8_products,
            .context = Longest(4096)};
  }

  // Learned positions end with their table.
  int64_t Longest(int64_t tokens) const {
    const int64_t learned = Geometry(runner_.spec()).learned_positions;
    return learned == 0 ? tokens : std::min(tokens, learned);
  }

  const Case one_;
  const ModelRunner runner_;
};

class SameBits : public testing::TestWithParam<Case>, protected Model {
 protected:
  SameBits() : Model(GetParam()) {}
};

class SameBitsOnIsas : public TestOnIsas<Case>, protected Model {
 protected:
  SameBitsOnIsas() : Model(one()) {}
};

TEST_P(SameBitsOnIsas, RELEASE_WhateverTheThreadsAndChunks) {
  const auto text = RandomText(Longest(200), runner_.spec().vocab_size, 1);
  const auto reference = runner_.Logits(text, Options(isa()));
  for (const int threads : {1, 2, 3}) {
    for (const int64_t chunk : {1, 7, 64, 200}) {
      if (threads == 1 && chunk >= std::ssize(text)) continue;  // the reference itself
      RunOptions options = Options(isa());
      options.threads = threads;
      options.chunk = chunk;
      EXPECT_EQ(runner_.Logits(text, options), reference)
          << threads << " threads, chunks of " << chunk;
    }
  }
}

TEST_P(SameBits, WhateverTheBatch) {
  std::vector<std::vector<int32_t>> texts;
  for (const int64_t tokens : {50, 130, 97}) {
    texts.push_back(RandomText(Longest(tokens), runner_.spec().vocab_size, 2 + texts.size()));
  }
  for (const int64_t chunk : {1, 40}) {
    RunOptions options = Options("");
    options.chunk = chunk;
    const auto batch = runner_.Batch(texts, options);
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(runner_.Logits(texts[i], options), batch[i]) << "text " << i;
    }
  }
}

// Eight texts, some of which read their prompt while others decode, and a tree of drafts. Every row
// has the bits of its text read alone, token by token.
TEST_P(SameBitsOnIsas, InAStepOfPromptsAndDecodesAndTrees) {
  if (runner_.InputsShareAScale()) GTEST_SKIP() << "a token depends on its company";
  const int64_t vocab = runner_.spec().vocab_size;
  RunOptions options = Options(isa());
  options.threads = 2;
  // Eight tokens hang on a text: after 0 come 1, 2 and 4; the path 0, 2, 3, 7 is accepted.
  const std::vector<int32_t> parents = {-1, 0, 0, 2, 0, 4, -1, 3};
  const auto drafts = RandomText(std::ssize(parents), vocab, 50);
  std::vector<std::vector<int32_t>> texts;
  std::vector<std::unique_ptr<TextCache>> caches;
  std::vector<Segment> segments;
  for (const int64_t length : {62, 90, 21, 84, 85, 91, 50, 86}) {
    // The tree crosses a page, and its path needs space.
    const int64_t tokens = std::min(length, Longest(4096) - (texts.empty() ? 5 : 0));
    texts.push_back(RandomText(tokens, vocab, 30 + texts.size()));
  }
  // The last rows of each text go into the step: one row, or a prompt.
  const std::vector<size_t> rows = {0, 1, 1, 1, 40, 1, 50, 1};
  for (size_t i = 0; i < texts.size(); ++i) {
    caches.push_back(runner_.NewText(options));
    const size_t before = texts[i].size() - rows[i];
    if (before > 0) {
      runner_.Step({{std::span(texts[i]).first(before), caches[i].get()}}, options);
    }
    segments.push_back({.tokens = std::span(texts[i]).subspan(before), .text = caches[i].get()});
  }
  segments[0] = {.tokens = drafts, .text = caches[0].get(), .parents = parents};
  const auto together = runner_.Step(segments, options);
  size_t at = drafts.size() * static_cast<size_t>(vocab);
  for (size_t i = 1; i < texts.size(); ++i) {
    const auto alone = runner_.Logits(texts[i], Options(isa()));
    const size_t size = rows[i] * static_cast<size_t>(vocab);
    EXPECT_TRUE(std::equal(alone.end() - static_cast<std::ptrdiff_t>(size), alone.end(),
                           together.begin() + static_cast<std::ptrdiff_t>(at)))
        << "text " << i;
    at += size;
  }
  const RunOptions alone = Options(isa());
  const auto begun = runner_.NewText(alone);
  const auto next_of = [&](TextCache& text, int32_t token) {
    return runner_.Step({{{&token, 1}, &text}}, alone);
  };
  for (const int32_t token : texts[0]) next_of(*begun, token);
  for (size_t row = 0; row < drafts.size(); ++row) {
    std::vector<int32_t> path;
    for (auto r = static_cast<int32_t>(row); r >= 0; r = parents[r]) {
      path.insert(path.begin(), drafts[r]);
    }
    const auto chain = begun->Fork();
    std::vector<float> decoded;
    for (const int32_t token : path) decoded = next_of(*chain, token);
    EXPECT_TRUE(std::ranges::equal(
        decoded, std::span(together).subspan(row * static_cast<size_t>(vocab), decoded.size())))
        << "draft " << row;
    if (row != 7) continue;
    caches[0]->Accept(7);
    constexpr int32_t kNext = 3;
    EXPECT_EQ(runner_.Step({{{&kNext, 1}, caches[0].get()}}, options), next_of(*chain, kNext))
        << isa();
  }
}

// The context has several stretches of attention, which the cores share in decode.
TEST_P(SameBits, RELEASE_OverALongContext) {
  const auto text = RandomText(Longest(2500), runner_.spec().vocab_size, 9);
  RunOptions options = Options("");
  options.chunk = 512;
  const auto reference = runner_.Logits(text, options);
  options.threads = 2;
  options.chunk = 33;
  EXPECT_EQ(runner_.Logits(text, options), reference);
}

const std::vector<Case> kCases = {
    Case{"llama/gqa", "dense", DType::kF32},
    Case{"llama/bf16", "dense", DType::kBF16},
    Case{"llama/f16", "dense", DType::kF16},
    Case{"mistral/window", "dense", DType::kF32},
    Case{"gpt_neox/parallel", "dense", DType::kF32},
    Case{"falcon/alibi", "dense", DType::kF32},
    Case{"mpt/storywriter", "dense", DType::kBF16},
    Case{"opt/post_norm", "dense", DType::kF32},
    Case{"bloom/seven_heads", "dense", DType::kF32},
    Case{"mixtral/two_of_five", "dense", DType::kF32},
    Case{"mixtral/bf16", "dense", DType::kBF16},
    Case{"granitemoeshared/shared", "dense", DType::kF32},
    Case{"gpt_oss/window", "dense", DType::kF32},
    Case{"gpt_oss/bf16", "dense", DType::kBF16},
    Case{"gpt_oss/window", "sinks:4+40", DType::kF16},
    Case{"gpt_oss/window", "blocks:initial=64,local_windows_len=64,second_block_count=2",
         DType::kF32},
    Case{"gpt_oss/bf16", "dense", DType::kI8, DType::kI8, true},
    Case{"llama4_text/chunks", "dense", DType::kF32},
    Case{"llama4_text/chunks", "sinks:4+11", DType::kF16},
    Case{"llama4_text/interleaved", "blocks:initial=64,local_windows_len=64,second_block_count=2",
         DType::kF32},
    Case{"llama4_text/bf16", "dense", DType::kI8, DType::kI8, true},
    Case{"ministral3/temperature", "dense", DType::kBF16},
    Case{"ministral3/temperature", "sinks:4+40", DType::kI8},
    Case{"deepseek_v2/lite", "dense", DType::kF32},
    Case{"deepseek_v2/groups", "sinks:4+40", DType::kBF16},
    Case{"deepseek_v3/groups", "dense", DType::kI8, DType::kI8, true},
    Case{"deepseek_v3/sigmoids", "dense", DType::kF16},
    Case{"deepseek_v32/chosen", "dense", DType::kBF16},
    Case{"deepseek_v32/new_config", "dense", DType::kF32},
    Case{"glm_moe_dsa/shared", "dense", DType::kF32},
    Case{"glm_moe_dsa/shared", "dense", DType::kI8, DType::kI8, true},
    Case{"deepseek_v3/sigmoids", "blocks:initial=64,local_windows_len=64,second_block_count=2",
         DType::kI8},
    Case{"glm/half_rotary", "dense", DType::kF16},
    Case{"falcon_h1/norm_behind_gate", "dense", DType::kBF16},
    Case{"nemotron_h/experts", "sinks:4+40", DType::kF32},
    Case{"granitemoehybrid/dense", "dense", DType::kI8, DType::kI8},
    Case{"llama/gqa", "sinks:4+40", DType::kF32},
    Case{"falcon/multi_query", "sinks:4+40", DType::kF16},
    Case{"falcon/alibi", "sinks:4+40", DType::kF32},
    Case{"mpt/alibi", "sinks:4+40", DType::kF32},
    Case{"bloom/alibi", "sinks:4+40", DType::kF32},
    Case{"mixtral/two_of_five", "sinks:4+40", DType::kF32},
    Case{"llama/bf16", "sinks:3+29", DType::kBF16},
    Case{"mistral/window", "sinks:2+5", DType::kF16},
    Case{"llama/bf16", "dense", DType::kI8, DType::kI8},
    Case{"falcon/alibi", "dense", DType::kI8, DType::kI8},
    Case{"llama/tied", "sinks:4+40", DType::kI8, DType::kI8},
    Case{"int8/llama/asymmetric_token", "dense", DType::kF32},
    Case{"int8/llama/tensor_static", "dense", DType::kI8},
    Case{"int8/mixtral/experts", "dense", DType::kF32},
    Case{"llama/gqa", "window:40", DType::kI8},
    Case{"llama/bf16", "dense", DType::kI8, DType::kI8, true},
    Case{"mpt/alibi", "dense", DType::kI8, {}, true},
    Case{"llama/gqa", "sinks:4+40", DType::kI8, {}, true},
    Case{"llama/gqa", "dense", DType::kI4, {}, true},
    Case{"llama/bf16", "dense", DType::kI8I4, {}, true}};
std::string NameOf(const Case& one) {
  return fmt::format("{}_{}_{}{}{}", one.model, one.kv, Name(one.kv_type),
                     one.int8_products ? "_products" : "", one.weights ? "_i8_weights" : "");
}

INSTANTIATE_TEST_SUITE_P(All, SameBits, testing::ValuesIn(kCases),
                         [](const auto& info) { return TestName(NameOf(info.param)); });
GODWIT_ON_ISAS(SameBitsOnIsas, kCases, NameOf, kernels::Best());

}  // namespace
}  // namespace godwit::same_bits_test
