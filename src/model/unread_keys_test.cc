#include "model/unread_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model_test_support.h"

namespace godwit::unread_keys_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DecoderSpec With(const std::string& fields, const std::string& family = "llama") {
  return SmallSpec(fmt::format(R"("model_type":"{}",{})", family, fields));
}

// Values of a key that change nothing, and one that does.
struct Case {
  std::string key;
  std::vector<std::string> neutral;
  std::string other;
};

const Case kRefused[] = {
    {"logit_scale", {"1", "1.0"}, "0.0625"},
    {"logits_scaling", {"1"}, "8"},
    {"lm_head_multiplier", {"1"}, "0.04"},
    {"output_multiplier_scale", {"1"}, "0.5"},
    {"dim_model_base", {}, "256"},
    {"embedding_multiplier", {"1"}, "12"},
    {"embedding_multiplier_scale", {"1"}, "78.4"},
    {"scale_emb", {"1"}, "12"},
    {"scale_embedding", {"false"}, "true"},
    {"residual_multiplier", {"1.0"}, "0.22"},
    {"scale_depth", {}, "1.4"},
    {"attention_multiplier", {}, "0.015"},
    {"softmax_scale", {}, "0.1"},
    {"query_pre_attn_scalar", {}, "256"},
    {"scale_attn_weights", {"true"}, "false"},
    {"scale_attn_by_inverse_layer_idx", {"false"}, "true"},
    {"attn_temperature_tuning", {"false", "0"}, "true"},
    {"use_logn_attn", {"false"}, "true"},
    {"attn_logit_softcapping", {}, "50"},
    {"final_logit_softcapping", {}, "30"},
    {"logits_soft_cap", {}, "30"},
    {"clip_qkv", {}, "8"},
    {"swiglu_limit", {}, "7"},
    {"norm_topk_prob", {"true"}, "false"},
    {"decoder_sparse_step", {"1"}, "2"},
    {"mlp_only_layers", {"[]"}, "[0,1]"},
    {"layer_types",
     {R"(["full_attention","full_attention"])", "[]"},
     R"(["full_attention","sliding_attention"])"},
    {"sliding_window_pattern", {}, "6"},
    {"interleaved_sliding_window", {"0"}, "4096"},
    {"attention_chunk_size", {"0"}, "8192"},
    {"is_causal", {"true"}, "false"},
    {"use_bidirectional_attention", {"false"}, "true"},
    {"partial_rotary_factor", {"1"}, "0.5"},
    {"rotary_pct", {"1"}, "0.25"},
    {"rope_ratio", {"1"}, "500"},
    {"rope_local_base_freq", {}, "10000"},
    {"no_rope_layers", {"[1,1]"}, "[1,0]"},
    {"no_rope_layer_interval", {}, "4"},
    {"rope_interleaved", {"false"}, "true"},
    {"use_mrope", {"false"}, "true"},
    {"use_dynamic_ntk", {"false"}, "true"},
    {"alibi", {"false"}, "true"},
    {"use_alibi", {"false"}, "true"},
    {"use_parallel_residual", {"false"}, "true"},
    {"parallel_attn", {"false"}, "true"},
    {"apply_residual_connection_post_layernorm", {"false"}, "true"},
    {"do_layer_norm_before", {"true"}, "false"},
};

TEST(UnreadKeysTest, AnotherFunctionIsRefusedWithItsValue) {
  for (const Case& c : kRefused) {
    SCOPED_TRACE(c.key);
    for (const std::string& neutral : c.neutral) {
      EXPECT_THAT(With(fmt::format(R"("{}":{})", c.key, neutral)).warnings, IsEmpty());
    }
    EXPECT_THAT(With(fmt::format(R"("{}":null)", c.key)).warnings, IsEmpty());
    const std::string message =
        ErrorOf(ErrorKind::kUnsupported, [&] { With(fmt::format(R"("{}":{})", c.key, c.other)); });
    const std::string found = c.other.starts_with('[') ? "a list of 2 values" : c.other;
    EXPECT_THAT(message, AllOf(HasSubstr("config.json: " + c.key + ": expected "),
                               HasSubstr("none, because llama models have no "),
                               HasSubstr(", found " + found)));
  }
}

TEST(UnreadKeysTest, KeysThatTransformersIgnoresGiveAWarning) {
  const Case cases[] = {{"sliding_window", {"0", "null"}, "4096"},
                        {"use_sliding_window", {"false", "null"}, "true"},
                        {"dual_chunk_attention_config", {"null"}, R"({"chunk_size":262144})"}};
  for (const Case& c : cases) {
    for (const std::string& neutral : c.neutral) {
      EXPECT_THAT(With(fmt::format(R"("{}":{})", c.key, neutral)).warnings, IsEmpty()) << c.key;
    }
    EXPECT_THAT(With(fmt::format(R"("{}":{})", c.key, c.other)).warnings,
                ElementsAre(AllOf(HasSubstr("config.json: " + c.key + ": "),
                                  HasSubstr("is ignored, as in transformers: llama models have "
                                            "no "))));
  }
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    EXPECT_THAT(With(fmt::format(R"("{}":false)", key), "mistral").warnings, IsEmpty());
    EXPECT_THAT(With(fmt::format(R"("{}":true)", key), "mistral").warnings,
                ElementsAre(HasSubstr(key)));
    EXPECT_THAT(With(fmt::format(R"("{}":true)", key), "llama").warnings, IsEmpty())
        << "it is read";
  }
}

TEST(UnreadKeysTest, KeysThatTheFamilyReadsGiveNoWarning) {
  EXPECT_THAT(With(R"("sliding_window":9)", "mistral").warnings, IsEmpty());
  EXPECT_THAT(With(R"("use_parallel_residual":true,"rotary_pct":0.5)", "gpt_neox").warnings,
              IsEmpty());
  EXPECT_THAT(With(R"("partial_rotary_factor":0.25)", "glm").warnings, IsEmpty());
  // transformers writes both keys.
  EXPECT_EQ(With(R"("rotary_pct":0.5,"partial_rotary_factor":0.5)", "gpt_neox").rotary.rotary_dim,
            2);
  EXPECT_EQ(With(R"("partial_rotary_factor":0.5)", "gpt_neox").rotary.rotary_dim, 2);
  // Fields of published Qwen models.
  for (const char* family : {"qwen2", "qwen3"}) {
    EXPECT_THAT(With(R"("use_sliding_window":false,"sliding_window":32768,"max_window_layers":1,)"
                     R"("layer_types":["full_attention","full_attention"])",
                     family)
                    .warnings,
                IsEmpty());
  }
}

TEST(UnreadKeysTest, RopeScalingHasNothingThatNobodyReads) {
  const std::string yarn = R"("rope_scaling":{"type":"yarn","rope_type":"yarn","factor":4)";
  EXPECT_THAT(With(yarn + R"(,"attn_factor":1,"attention_factor":1.5,"beta_fast":16})").warnings,
              IsEmpty());
  EXPECT_THAT(
      With(yarn + R"(,"finetuned":true,"unknown":null})").warnings,
      ElementsAre("config.json: rope_scaling.finetuned: true is ignored, because llama models do "
                  "not use it"));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { With(yarn + R"(,"attn_factor":1.2})"); }),
              HasSubstr("config.json: rope_scaling.attn_factor: expected 1 or none"));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [] {
                        With(R"("rope_scaling":{"type":"linear","factor":2,)"
                             R"("attention_factor":1.2})");
                      }),
              HasSubstr("rope_scaling.attention_factor"));
  for (const char* key : {"short_factor", "long_factor"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                        [&] { With(fmt::format(R"({},"{}":[1,2]}})", yarn, key)); }),
                HasSubstr(key));
  }
  EXPECT_THAT(
      ErrorOf(
          ErrorKind::kUnsupported,
          [] { With(R"("rope_parameters":{"rope_type":"default","partial_rotary_factor":0.5})"); }),
      HasSubstr("rope_parameters.partial_rotary_factor: expected 1 or none"));
  EXPECT_THAT(
      With(R"("seq_length":64,"n_layer":2,"n_head":4,"rope_scaling":{"type":"yarn"})", "bloom")
          .warnings,
      ElementsAre(HasSubstr("rope_scaling: an object of 1 keys is ignored")));
}

}  // namespace
}  // namespace godwit::unread_keys_test
