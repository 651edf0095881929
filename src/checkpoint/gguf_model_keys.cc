#include "checkpoint/gguf_model_keys.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <optional>
#include <span>

#include "model/gguf_fields.h"

namespace godwit {
namespace {

using ScalingKind = RotaryScaling::Kind;

// Keys that begin with the architecture.
class ArchitectureKeys {
 public:
  ArchitectureKeys(std::string_view architecture, GgufKeys& keys)
      : prefix_(std::string(architecture) + "."), keys_(keys) {}

  void Int(std::string_view key, int64_t value) { keys_.U32(prefix_ + std::string(key), value); }
  void Float(std::string_view key, double value) { keys_.F32(prefix_ + std::string(key), value); }
  void Float(std::string_view key, std::optional<float> value) {
    if (value) Float(key, double{*value});
  }
  void Bool(std::string_view key, bool value) { keys_.Bool(prefix_ + std::string(key), value); }
  void Text(std::string_view key, std::string_view value) {
    keys_.Text(prefix_ + std::string(key), value);
  }
  void Ints(std::string_view key, std::span<const int32_t> values) {
    keys_.I32s(prefix_ + std::string(key), values);
  }
  void Bools(std::string_view key, const std::vector<bool>& values) {
    keys_.Bools(prefix_ + std::string(key), values);
  }

 private:
  const std::string prefix_;
  GgufKeys& keys_;
};

// The context that the file states. With linear scaling it is the one before scaling.
int64_t StatedContext(const ModelFolder& model) {
  constexpr std::string_view kKey = "max_position_embeddings";
  const DecoderSpec& spec = model.spec();
  const RotaryScaling& scaling = spec.rotary.scaling;
  if (scaling.kind != ScalingKind::kLinear) return spec.max_context;
  if (model.config().Has(kKey)) return model.config().Int(kKey, {1, spec.max_context});
  return std::llround(static_cast<double>(spec.max_context) / scaling.factor);
}

// With tensors for each head, lengths are those of what is cached, and the others those of a head.
void PutLatent(const LatentAttention& latent, const DecoderSpec& spec, ArchitectureKeys& own) {
  if (latent.query_rank > 0) own.Int("attention.q_lora_rank", latent.query_rank);
  own.Int("attention.kv_lora_rank", latent.kv_rank);
  if (latent.heads_apart) {
    own.Int("attention.head_count_kv", 1);
    own.Int("attention.key_length", latent.cached_dim());
    own.Int("attention.value_length", latent.kv_rank);
    own.Int("attention.key_length_mla", latent.query_dim());
    own.Int("attention.value_length_mla", latent.value_dim);
  } else {
    own.Int("attention.head_count_kv", spec.heads);
    own.Int("attention.key_length", latent.query_dim());
    own.Int("attention.value_length", latent.value_dim);
  }
  const double factor = spec.rotary.scaling.factor;
  if (spec.rotary.scaling.kind != ScalingKind::kYarn || factor <= 1) return;
  const double magnitude =
      std::sqrt(double{*spec.score_scale} * std::sqrt(static_cast<double>(latent.query_dim())));
  own.Float("rope.scaling.yarn_log_multiplier", (magnitude - 1) / std::log(factor));
}

// A layer without attention has no KV heads.
void PutKvHeads(const DecoderSpec& spec, ArchitectureKeys& own) {
  constexpr std::string_view kKey = "attention.head_count_kv";
  std::vector<int32_t> heads;
  for (int64_t i = 0; i < spec.layers; ++i) {
    heads.push_back(HasAttention(KindOf(spec, i)) ? static_cast<int32_t>(spec.kv_heads) : 0);
  }
  if (std::ranges::count(heads, 0) == 0) return own.Int(kKey, spec.kv_heads);
  own.Ints(kKey, heads);
}

void PutShape(const ModelFolder& model, std::string_view architecture, ArchitectureKeys& own) {
  const DecoderSpec& spec = model.spec();
  own.Int("block_count", spec.layers);
  own.Int("context_length", StatedContext(model));
  own.Int("embedding_length", spec.hidden_size);
  own.Int("vocab_size", spec.vocab_size);
  own.Int("attention.head_count", spec.heads);
  if (spec.latent) {
    PutLatent(*spec.latent, spec, own);
  } else {
    PutKvHeads(spec, own);
  }
  // Gemma's head size is 256 unless the file states it.
  if (!spec.latent &&
      (spec.heads * spec.head_dim != spec.hidden_size || architecture.starts_with("gemma"))) {
    own.Int("attention.key_length", spec.head_dim);
    own.Int("attention.value_length", spec.head_dim);
  }
  own.Float(spec.norm == ops::NormKind::kRms ? "attention.layer_norm_rms_epsilon"
                                             : "attention.layer_norm_epsilon",
            double{spec.norm_epsilon});
}

// The width of the MLP in layers without experts, or of experts.
int64_t DenseWidth(const DecoderSpec& spec) {
  for (int64_t i = 0; i < spec.layers; ++i) {
    const MlpSpec& mlp = KindOf(spec, i).mlp;
    if (mlp.experts == 0) return mlp.intermediate;
  }
  return spec.mlp.intermediate;
}

// Keys of DeepSeek's experts, and of others that are chosen or shared in their own ways.
void PutExpertChoice(const DecoderSpec& spec, std::string_view architecture,
                     ArchitectureKeys& own) {
  const MlpSpec& mlp = spec.mlp;
  const ops::ExpertChoice& choice = mlp.choice;
  if (choice.score != ops::ExpertScore::kLogit) {
    own.Int("expert_gating_func", choice.score == ops::ExpertScore::kSigmoid ? kGgufSigmoid : 1);
  }
  int64_t dense = 0;
  while (dense < spec.layers && KindOf(spec, dense).mlp.experts == 0) ++dense;
  if (architecture == "llama4") {
    own.Int("interleave_moe_layer_step", dense + 1);
  } else if (dense > 0) {
    own.Int("leading_dense_block_count", dense);
  }
  // llama.cpp wants it, though it knows no other step.
  if (architecture == "ernie4_5-moe") own.Int("interleave_moe_layer_step", 1);
  if (spec.shared_mlp.intermediate > 0 && spec.shared_mlp.intermediate % mlp.intermediate == 0) {
    own.Int("expert_shared_count", spec.shared_mlp.intermediate / mlp.intermediate);
  }
  if (architecture != "deepseek2" && architecture != "glm4moe") return;
  own.Float("expert_weights_scale", double{choice.share_scale});
  own.Bool("expert_weights_norm", mlp.shares_among_chosen);
  if (choice.groups == 1) return;
  own.Int("expert_group_count", choice.groups);
  own.Int("expert_group_used_count", choice.groups_chosen);
}

void PutMlp(const DecoderSpec& spec, std::string_view architecture, ArchitectureKeys& own) {
  const MlpSpec& mlp = spec.mlp;
  own.Int("feed_forward_length", DenseWidth(spec));
  if (mlp.experts == 0) return;
  PutExpertChoice(spec, architecture, own);
  own.Int("expert_count", mlp.experts);
  own.Int("expert_used_count", mlp.experts_per_token);
  own.Int("expert_feed_forward_length", mlp.intermediate);
  if (spec.shared_mlp.intermediate > 0) {
    own.Int("expert_shared_feed_forward_length", spec.shared_mlp.intermediate);
  }
}

void PutRotary(const DecoderSpec& spec, ArchitectureKeys& own) {
  const RotarySpec& rotary = spec.rotary;
  if (rotary.rotary_dim == 0) return;
  own.Int("rope.dimension_count", rotary.rotary_dim);
  own.Float("rope.freq_base", rotary.theta);
  for (const LayerKind& kind : spec.other_kinds) {
    if (kind.rotary.rotary_dim == 0 || kind.rotary == rotary) continue;
    own.Float("rope.freq_base_swa", kind.rotary.theta);
    break;
  }
  const RotaryScaling& scaling = rotary.scaling;
  if (scaling.kind == ScalingKind::kLinear) {
    own.Text("rope.scaling.type", "linear");
    own.Float("rope.scaling.factor", scaling.factor);
  } else if (scaling.kind == ScalingKind::kYarn) {
    own.Text("rope.scaling.type", "yarn");
    own.Float("rope.scaling.factor", scaling.factor);
    own.Int("rope.scaling.original_context_length", scaling.original_context);
    own.Float("rope.scaling.yarn_beta_fast", scaling.beta_fast);
    own.Float("rope.scaling.yarn_beta_slow", scaling.beta_slow);
  } else if (scaling.kind == ScalingKind::kLongRope) {
    own.Int("rope.scaling.original_context_length", scaling.original_context);
    own.Float("rope.scaling.attn_factor", scaling.attention_factor);
  }
}

void PutWindows(const DecoderSpec& spec, std::string_view architecture, bool says_windows,
                ArchitectureKeys& own) {
  if (spec.chunked) return;  // no key has the size of chunks
  const std::vector<int64_t> windows = OfEachLayer(spec, &LayerKind::window);
  const int64_t window = std::ranges::max(windows);
  // The window of all published StarCoder2 models is a default, so its absence must be stated.
  if (window > 0 || architecture == "starcoder2") own.Int("attention.sliding_window", window);
  if (!says_windows || window == 0) return;
  std::vector<bool> windowed;
  for (const int64_t of_layer : windows) windowed.push_back(of_layer != 0);
  own.Bools("attention.sliding_window_pattern", windowed);
}

// Adds keys that only some families have.
void PutOwn(const ModelFolder& model, std::string_view architecture, ArchitectureKeys& own) {
  const DecoderSpec& spec = model.spec();
  own.Float("attention.clamp_kqv", spec.clip_qkv);
  own.Float("attn_logit_softcapping", spec.score_cap);
  own.Float("final_logit_softcapping", spec.logit_cap);
  if (architecture == "gptneox" || architecture == "stablelm") {
    own.Bool("use_parallel_residual", spec.topology != Topology::kSequential);
  }
  if (architecture == "command-r" || architecture == "cohere2") {
    own.Float("logit_scale", double{spec.logit_scale});
  }
  if (architecture.starts_with("lfm2")) own.Int("shortconv.l_cache", spec.convolution.taps);
  if (architecture.starts_with("granite")) {
    // Granite divides by this scale.
    own.Float("logit_scale", 1 / double{spec.logit_scale});
    own.Float("embedding_scale", double{spec.embedding_scale});
    own.Float("residual_scale", double{spec.residual_scale});
    own.Float("attention.scale", spec.score_scale);
  }
  if (architecture == "mpt" && !spec.alibi.slopes.empty()) {
    // The last slope is 2^-bias, if the number of heads is a power of two.
    const auto attention = model.config().Object("attn_config");
    own.Float("attention.max_alibi_bias",
              attention ? attention->FloatOr("alibi_bias_max", 8, {0, 64}) : 8);
  }
}

// The number by which Llama 3.1 and later divide a frequency (RotaryScaling::Kind::kLlama3).
float Llama3Divisor(const RotaryScaling& scaling, double frequency) {
  const double turns =
      static_cast<double>(scaling.original_context) * frequency / (2 * std::numbers::pi);
  if (turns < scaling.low_freq_factor) return static_cast<float>(scaling.factor);
  if (turns > scaling.high_freq_factor) return 1;
  const double smooth =
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return static_cast<float>(1 / ((1 - smooth) / scaling.factor + smooth));
}

}  // namespace

void PutModelKeys(const ModelFolder& model, std::string_view architecture, bool says_windows,
                  GgufKeys& keys) {
  keys.Text("general.architecture", architecture);
  keys.Text("general.type", "model");
  const auto path = std::filesystem::weakly_canonical(model.path());
  keys.Text("general.name", (path.has_filename() ? path : path.parent_path()).stem().native());
  keys.U32("general.quantization_version", 2);
  ArchitectureKeys own(architecture, keys);
  PutShape(model, architecture, own);
  PutMlp(model.spec(), architecture, own);
  PutRotary(model.spec(), own);
  PutWindows(model.spec(), architecture, says_windows, own);
  PutOwn(model, architecture, own);
}

std::vector<std::pair<std::string, std::vector<float>>> RopeFactorTensors(const DecoderSpec& spec) {
  const RotaryScaling& scaling = spec.rotary.scaling;
  const auto floats = [](const std::vector<double>& values) {
    return std::vector<float>(values.begin(), values.end());
  };
  if (scaling.kind == ScalingKind::kLongRope) {
    return {{"rope_factors_long.weight", floats(scaling.long_factors)},
            {"rope_factors_short.weight", floats(scaling.short_factors)}};
  }
  if (scaling.kind != ScalingKind::kLlama3) return {};
  std::vector<float> divisors;
  for (int64_t i = 0; i < spec.rotary.rotary_dim; i += 2) {
    const double exponent = static_cast<double>(i) / static_cast<double>(spec.rotary.rotary_dim);
    divisors.push_back(Llama3Divisor(scaling, std::pow(spec.rotary.theta, -exponent)));
  }
  return {{"rope_freqs.weight", std::move(divisors)}};
}

}  // namespace godwit
