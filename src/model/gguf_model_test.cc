#include "model/gguf_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "model/gguf_model_test_support.h"

namespace godwit::gguf_model_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kIq1S = 19;

TEST(GgufModel, SaysWhatConfigJsonWouldSay) {
  const Translated tied(Model());
  EXPECT_EQ(tied.config["model_type"], "llama");
  EXPECT_EQ(tied.config["vocab_size"], 5) << "the rows of the embedding";
  EXPECT_EQ(tied.config["num_key_value_heads"], 1);
  EXPECT_EQ(tied.config["tie_word_embeddings"], true);
  EXPECT_EQ(tied.config["attention_bias"], false);
  EXPECT_TRUE(tied.config["rope_scaling"].is_null());
  EXPECT_FALSE(tied.config.contains("head_dim"));

  GgufBuilder untied = Model();
  AddMatrix(untied, "output.weight", 5, 8);
  untied.Tensor("blk.0.attn_q.bias", {8}, kF32, Rows(8, 1));
  untied.F32("llama.rope.freq_base", 5e5f).F32("llama.logit_scale", 0.25f);
  untied.U32("llama.attention.sliding_window", 32);
  const Translated model(untied);
  EXPECT_EQ(model.config["tie_word_embeddings"], false);
  EXPECT_EQ(model.config["attention_bias"], true);
  EXPECT_EQ(model.config["rope_theta"], 5e5);
  EXPECT_EQ(model.config["model_type"], "mistral") << "which has windows";
  EXPECT_EQ(model.config["sliding_window"], 32);
  EXPECT_EQ(model.config["logit_scale"], 0.25) << "for the family to refuse";
}

// Rows (i, i + half) of each head are neighbours in the file.
TEST(GgufModel, PutsRowsOfQueriesAndKeysBack) {
  GgufBuilder file = Model();
  AddMatrix(file, "blk.0.attn_q.weight", 8, 8);
  AddMatrix(file, "blk.0.attn_k.weight", 4, 8);
  AddMatrix(file, "blk.0.attn_v.weight", 4, 8);
  file.Tensor("blk.0.attn_q.bias", {8}, kF32, Rows(8, 1));
  const Translated model(file);
  const std::string attention = "model.layers.0.self_attn.";
  EXPECT_THAT(model.Column(attention + "q_proj.weight"), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(model.Column(attention + "q_proj.bias"), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(model.Column(attention + "k_proj.weight"), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(model.Column(attention + "v_proj.weight"), ElementsAre(0, 1, 2, 3));
}

// The file has all q, then all k, then all v. config.json groups them by KV head: its queries, its
// key and its value.
TEST(GgufModel, GroupsRowsByKvHeadAgain) {
  GgufBuilder file;
  file.Text("general.architecture", "falcon").U32("falcon.attention.head_count", 4);
  file.U32("falcon.attention.head_count_kv", 2).U32("falcon.embedding_length", 8);
  file.U32("falcon.block_count", 1).U32("falcon.context_length", 64);
  file.U32("falcon.feed_forward_length", 32);
  AddMatrix(file, "token_embd.weight", 5, 8);
  AddMatrix(file, "blk.0.attn_qkv.weight", 16, 8);  // heads of 2 rows: q 0 to 7, k to 11, v to 15
  const Translated model(file);
  EXPECT_THAT(model.Column("transformer.h.0.self_attention.query_key_value.weight"),
              ElementsAre(0, 1, 2, 3, 8, 9, 12, 13, 4, 5, 6, 7, 10, 11, 14, 15));
  EXPECT_EQ(model.config["num_kv_heads"], 2);
  EXPECT_EQ(model.config["num_ln_in_parallel_attn"], 1);
}

TEST(GgufModel, TakesExpertsApart) {
  GgufBuilder file = Model();
  file.U32("llama.expert_count", 2).U32("llama.expert_used_count", 1);
  file.Tensor("blk.0.ffn_gate_exps.weight", {2, 16, 8}, kF32, Rows(32, 8));
  const Translated model(file);
  EXPECT_EQ(model.config["model_type"], "mixtral");
  EXPECT_EQ(model.config["num_local_experts"], 2);
  const TensorInfo* second =
      model.model.weights->Find("model.layers.0.block_sparse_moe.experts.1.w1.weight");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->Describe(), "F32 [16, 8]");
  EXPECT_EQ(AsBytes(model.file).data() + second->offset_bytes, second->bytes.data());
  EXPECT_EQ(model.Column(second->name)[0], 16);

  GgufBuilder flat = Model();
  AddMatrix(flat, "blk.0.ffn_gate_exps.weight", 32, 8);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, flat), HasSubstr("expected the matrices of up to"));
}

TEST(GgufModel, TellsTwoFalconsApart) {
  GgufBuilder file = Model("falcon");
  file.Tensor("blk.0.attn_norm.weight", {8}, kF32, Rows(8, 1));
  EXPECT_NE(Translated(file).model.weights->Find("transformer.h.0.input_layernorm.weight"),
            nullptr);
  file.Tensor("blk.0.attn_norm_2.weight", {8}, kF32, Rows(8, 1));
  const Translated second(file);
  EXPECT_NE(second.model.weights->Find("transformer.h.0.ln_mlp.weight"), nullptr);
  EXPECT_NE(second.model.weights->Find("transformer.h.0.ln_attn.weight"), nullptr);
  EXPECT_EQ(second.config["new_decoder_architecture"], true);
}

// Factors for heads of 128: some dimensions stay, some are divided by the factor, some lie between.
std::string Llama3Factors(double factor, double high) {
  std::string bytes;
  for (int i = 0; i < 64; ++i) {
    const double turns = 8192 * std::pow(5e5, -i / 64.0) / (2 * std::numbers::pi);
    const double smooth = std::clamp((turns - 1) / (high - 1), 0.0, 1.0);
    bytes += Raw(static_cast<float>(1 / ((1 - smooth) / factor + smooth)));
  }
  return bytes;
}

TEST(GgufModel, KnowsTheFrequenciesOfLlama3) {
  const auto with = [](const std::string& factors) {
    GgufBuilder file = Model();
    file.U32("llama.attention.key_length", 128).F32("llama.rope.freq_base", 5e5f);
    file.Tensor("rope_freqs.weight", {64}, kF32, factors);
    return file;
  };
  for (const double factor : {8.0, 32.0}) {
    const Translated model(with(Llama3Factors(factor, 4)));
    const nlohmann::json& scaling = model.config["rope_scaling"];
    EXPECT_EQ(scaling["rope_type"], "llama3");
    EXPECT_NEAR(scaling["factor"].get<double>(), factor, 1e-4);
    EXPECT_EQ(scaling["original_max_position_embeddings"], 8192);
    EXPECT_EQ(model.model.weights->Names(), std::vector<std::string>{"model.embed_tokens.weight"});
  }
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, with(Llama3Factors(8, 5))),
              HasSubstr("tensor rope_freqs.weight: expected the published factors of Llama 3"));
  EXPECT_TRUE(Translated(with(Llama3Factors(1, 4))).config["rope_scaling"].is_null());
}

TEST(GgufModel, TranslatesRopeScaling) {
  GgufBuilder yarn = Model();
  yarn.Text("llama.rope.scaling.type", "yarn").F32("llama.rope.scaling.factor", 4);
  yarn.U32("llama.rope.scaling.original_context_length", 16);
  yarn.F32("llama.rope.scaling.yarn_attn_factor", 1.5f);
  const nlohmann::json expected = {{"rope_type", "yarn"},
                                   {"factor", 4.0},
                                   {"original_max_position_embeddings", 16},
                                   {"attention_factor", 1.5}};
  EXPECT_EQ(Translated(yarn).config["rope_scaling"], expected);
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, Model().Text("llama.rope.scaling.type", "longrope")),
              HasSubstr("llama.rope.scaling.type: expected none, linear, yarn, or longrope with"));
}

TEST(GgufModel, RefusesWhatIsNotBuiltByName) {
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, GgufBuilder().Text("general.architecture", "mamba")),
              AllOf(HasSubstr("general.architecture: expected llama, qwen2"),
                    HasSubstr("found \"mamba\"")));
  GgufBuilder type = Model();
  type.Tensor("blk.0.ffn_up.weight", {256}, kIq1S, std::string(50, 'x'));
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, type),
              HasSubstr("tensor \"blk.0.ffn_up.weight\" has type IQ1_S, which is not supported; "
                        "supported are F32, F16, BF16, Q8_0"));
  EXPECT_THAT(Refusal(ErrorKind::kUnsupported, Model().U32("llama.rope.dimension_count", 2)),
              HasSubstr("llama.rope.dimension_count: expected 4, the size of a head"));
}

TEST(GgufModel, ChecksWhatItComputesWith) {
  EXPECT_THAT(Refusal(ErrorKind::kFormat, GgufBuilder().U32("a", 1)),
              HasSubstr("general.architecture: expected text, found none"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, GgufBuilder().Text("general.architecture", "llama")),
              HasSubstr("token_embd.weight: expected a matrix, found none"));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, Model().U32("llama.attention.value_length", 5)),
              HasSubstr("llama.attention.value_length: expected a whole number from 4 to 4"));
  GgufBuilder heads;
  heads.Text("general.architecture", "qwen2").U32("qwen2.attention.head_count", 0);
  AddMatrix(heads, "token_embd.weight", 5, 8);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, heads), HasSubstr("qwen2.attention.head_count"));
  // More heads than any tensor has rows take no memory.
  GgufBuilder many;
  many.Text("general.architecture", "llama").U32("llama.attention.head_count", 1 << 20);
  many.U32("llama.embedding_length", 8).U32("llama.attention.key_length", 1 << 20);
  AddMatrix(many, "token_embd.weight", 5, 8);
  AddMatrix(many, "blk.0.attn_q.weight", 8, 8);
  EXPECT_THAT(Refusal(ErrorKind::kFormat, many), HasSubstr("block_count"));
  GgufBuilder twice = Model();
  twice.Tensor("blk.0.ffn_norm.weight", {8}, kF32, Rows(8, 1));
  twice.Tensor("blk.00.ffn_norm.weight", {8}, kF32, Rows(8, 1));
  EXPECT_THAT(Refusal(ErrorKind::kFormat, twice), HasSubstr("expected one tensor that is"));
}

TEST(GgufModel, TakesANumberWhereAMatrixShouldBe) {
  const Translated model(Model().Tensor("blk.0.attn_q.weight", {}, kF32, Raw(1.0f)));
  const TensorInfo* query = model.model.weights->Find("model.layers.0.self_attn.q_proj.weight");
  ASSERT_NE(query, nullptr);  // the wrong shape is found later
  EXPECT_TRUE(query->shape.empty());
  EXPECT_EQ(query->row_order, nullptr);
}

// A tensor without a translation keeps its name, by which it is refused.
TEST(GgufModel, KeepsUnknownTensors) {
  GgufBuilder file = Model();
  file.Tensor("blk.0.ssm_a", {8}, kF32, Rows(8, 1));
  EXPECT_NE(Translated(file).model.weights->Find("blk.0.ssm_a"), nullptr);
}

}  // namespace
}  // namespace godwit::gguf_model_test
