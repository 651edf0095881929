#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// The rotation of a config that states none.
constexpr std::string_view kApertusRope =
    R"({"rope_parameters":{"rope_type":"llama3","rope_theta":12000000,"factor":8,)"
    R"("low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":8192}})";

}  // namespace

// Llama with norms of query and key heads, and an MLP without a gate, whose xIELU has numbers of
// its own in every layer.
DecoderSpec DescribeApertus(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config, {.activation = ""});
  ExpectString(config, "hidden_act", "xielu", /*fallback=*/"xielu");
  const bool stated = config.Has("rope_scaling") || config.Has("rope_parameters");
  ReadRotary(stated ? config : HfConfig::Parse(kApertusRope, "apertus"), spec.head_dim,
             "rope_theta", spec, /*default_theta=*/1.2e7);
  if (!stated) spec.rotary.theta = config.FloatOr("rope_theta", spec.rotary.theta, kThetaRange);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.qk_norm = QkNorm::kHeads;
  spec.mlp.gated = false;
  spec.mlp.xielu = true;
  spec.names.attention_norm = "model.layers.{}.attention_layernorm";
  spec.names.mlp_norm = "model.layers.{}.feedforward_layernorm";
  spec.names.xielu = "model.layers.{}.mlp.act_fn";
  return spec;
}

}  // namespace godwit
