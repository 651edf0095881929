#include <string>

#include "model/archs/all.h"
#include "tests/fuzz/targets.h"
#include "weights/hf_config.h"

namespace godwit::fuzz {
namespace {

constexpr IntRange kSize = {1, 1 << 20};
constexpr FloatRange kScale = {1e-6, 1e9};
constexpr const char* kKeys[] = {"model_type",
                                 "hidden_size",
                                 "num_hidden_layers",
                                 "num_attention_heads",
                                 "head_dim",
                                 "vocab_size",
                                 "max_position_embeddings",
                                 "rms_norm_eps",
                                 "rope_theta",
                                 "rope_scaling",
                                 "eos_token_id",
                                 "tie_word_embeddings",
                                 "layer_types",
                                 "rotary_pct",
                                 "factor",
                                 "sliding_window",
                                 "attn_config",
                                 "num_kv_heads",
                                 "word_embed_proj_dim",
                                 "num_local_experts",
                                 "partial_rotary_factor",
                                 "original_max_position_embeddings"};

void ReadEveryKey(const HfConfig& config, int depth) {
  for (const char* key : kKeys) {
    const bool has = config.Has(key);
    Accepts([&] {
      const int64_t value = config.Int(key, kSize);
      Require(has && value >= kSize.min && value <= kSize.max, "an int is in its range");
    });
    Accepts([&] { Require(has || config.IntOr(key, -7, kSize) == -7, "absent is the default"); });
    Accepts([&] {
      const double value = config.Float(key, kScale);
      Require(has && value >= kScale.min && value <= kScale.max, "a float is in its range");
    });
    Accepts([&] { Require(has || config.BoolOr(key, true), "absent is the default"); });
    Accepts([&] { Require(has || config.StringOr(key, "x") == "x", "absent is the default"); });
    Accepts([&] {
      for (const int64_t id : config.Ints(key, kSize)) {
        Require(id >= kSize.min && id <= kSize.max, "every int is in its range");
      }
    });
    Accepts([&] { config.Strings(key); });
    Accepts([&] {
      const auto object = config.Object(key);
      if (object && depth < 3) ReadEveryKey(*object, depth + 1);
    });
    Require(!Accepts([&] { config.Refuse(key, "something else"); }), "Refuse throws");
  }
}

void DescribeKind(const DecoderSpec& spec, int64_t layer) {
  const LayerKind& kind = KindOf(spec, layer);
  const RotarySpec& rotary = kind.rotary;
  const MlpSpec& mlp = kind.mlp;
  Require(kind.head_dim > 0 && rotary.rotary_dim <= kind.head_dim, "a head holds its rotation");
  Require(kind.kv_heads > 0 && spec.heads % kind.kv_heads == 0, "heads share KV heads evenly");
  Require(kind.keys_of < layer, "a layer reads keys of a layer before it");
  Require(0 <= mlp.experts_per_token && mlp.experts_per_token <= mlp.experts,
          "a token has no more experts than there are");
  Require(mlp == spec.mlp || (mlp.experts == 0 && spec.mlp.experts > 0) || kind.keys_of >= 0,
          "MLPs differ where experts do, or where layers read other layers' keys");
  const RotaryEncoding encoding(rotary, DefaultContext(spec));
  Require(encoding.rotary_dim() == rotary.rotary_dim, "the encoding follows the spec");
}

// An accepted description has sizes that arithmetic can use.
void Describe(const HfConfig& config) {
  const DecoderSpec spec = DescribeModel(config);
  Require(spec.hidden_size > 0 && spec.layers > 0 && spec.vocab_size > 0, "sizes are positive");
  Require(spec.layer_kind.empty() || std::ssize(spec.layer_kind) == spec.layers,
          "a kind for every layer");
  Require(spec.alibi.slopes.empty() || std::ssize(spec.alibi.slopes) == spec.heads,
          "a slope for every head");
  Require(spec.embedding_size.value_or(1) > 0, "embeddings have a width");
  Require(DefaultContext(spec) > 0 && spec.max_context > 0, "there is a context");
  Require(spec.quantization.Find("model.layers.10.self_attn.q_proj") == nullptr ||
              !spec.quantization.Distinct().empty(),
          "what is quantized is so in some way");
  for (const LayersOfKind& layers : LayersByKind(spec)) DescribeKind(spec, layers.first);
}

}  // namespace

void FuzzConfig(std::span<const uint8_t> input) {
  Accepts([&] {
    const HfConfig config = HfConfig::Parse(AsText(input), "config.json");
    ReadEveryKey(config, 0);
    Describe(config);
  });
}

}  // namespace godwit::fuzz
