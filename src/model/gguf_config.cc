#include "model/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "model/gguf_fields.h"
#include "weights/tensor_rows.h"

namespace godwit {
namespace {

using nlohmann::json;

constexpr IntRange kHeadCountRange{1, 1 << 20};
constexpr FloatRange kNumberRange{-1e12, 1e12};

const TensorInfo* FindTensor(const GgufFiles& model, std::string_view name) {
  const auto found = std::ranges::find(model.tensors, name, &TensorInfo::name);
  return found == model.tensors.end() ? nullptr : &*found;
}

// Keys that change what a model computes, with their names in config.json.
struct FunctionKey {
  std::string_view gguf, hf;
};
constexpr FunctionKey kFunctionKeys[] = {
    {"logit_scale", "logit_scale"},
    {"embedding_scale", "embedding_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"attention.scale", "attention_multiplier"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {"attention.clamp_kqv", "clip_qkv"},
    {"attention.sliding_window", "sliding_window"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
};

// The factors by which Llama 3.1 and later divide frequencies. The converter computes them from the
// only numbers that were ever published.
struct Llama3Scaling {
  static constexpr double kLow = 1, kHigh = 4, kContext = 8192;
  double factor;

  double Divisor(double frequency) const {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength < kContext / kHigh) return 1;
    if (wavelength > kContext / kLow) return factor;
    const double smooth = (kContext / wavelength - kLow) / (kHigh - kLow);
    return 1 / ((1 - smooth) / factor + smooth);
  }
};

std::vector<float> ReadRotaryFactors(const GgufFiles& model, const TensorInfo& tensor,
                                     int64_t rotated) {
  if (tensor.dtype != DType::kF32 || tensor.shape != std::vector{rotated / 2}) {
    Throw(ErrorKind::kFormat,
          "{}: tensor {}: expected {} factors in F32, one for each rotation, found {}",
          model.metadata.file_name(), tensor.name, rotated / 2, tensor.Describe());
  }
  return ReadAllRows(tensor);
}

json ReadLlama3(const GgufFiles& model, const TensorInfo& tensor, double theta, int64_t rotated) {
  const std::vector<float> factors = ReadRotaryFactors(model, tensor, rotated);
  const Llama3Scaling scaling{.factor = std::ranges::max(factors)};
  for (size_t i = 0; i < factors.size(); ++i) {
    const double exponent = 2 * static_cast<double>(i) / static_cast<double>(rotated);
    const double expected = scaling.Divisor(std::pow(theta, -exponent));
    if (!(std::abs(factors[i] - expected) <= 1e-3 * expected)) {
      Throw(ErrorKind::kUnsupported,
            "{}: tensor {}: expected the published factors of Llama 3, found others",
            model.metadata.file_name(), tensor.name);
    }
  }
  if (scaling.factor <= 1) return nullptr;
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", Llama3Scaling::kLow},
          {"high_freq_factor", Llama3Scaling::kHigh},
          {"original_max_position_embeddings", Llama3Scaling::kContext}};
}

// Sets the fields of `config` that the file has.
void ReadPresentKeys(const GgufMetadata& metadata, std::span<const FunctionKey> keys, json& config,
                     FloatRange range = kNumberRange) {
  for (const auto& [gguf, hf] : keys) {
    const std::string own = metadata.ArchitectureKey(gguf);
    if (metadata.Has(own)) config[hf] = metadata.Float(own, range);
  }
}

json ReadScaling(const GgufMetadata& metadata) {
  const std::string key = metadata.ArchitectureKey("rope.scaling.type");
  const std::string type = metadata.StringOr(key, "none");
  if (type == "none") return nullptr;
  if (type != "linear" && type != "yarn") {
    metadata.Refuse(key, "none, linear, yarn, or longrope with its factors", Quote(type),
                    ErrorKind::kUnsupported);
  }
  json scaling{
      {"rope_type", type},
      {"factor", metadata.Float(metadata.ArchitectureKey("rope.scaling.factor"), kNumberRange)}};
  if (type == "linear") return scaling;
  const std::string original = metadata.ArchitectureKey("rope.scaling.original_context_length");
  scaling["original_max_position_embeddings"] = metadata.Int(original, kSizeRange);
  constexpr FunctionKey kYarnKeys[] = {{"rope.scaling.yarn_beta_fast", "beta_fast"},
                                       {"rope.scaling.yarn_beta_slow", "beta_slow"},
                                       {"rope.scaling.yarn_attn_factor", "attention_factor"}};
  ReadPresentKeys(metadata, kYarnKeys, scaling);
  return scaling;
}

// LongRoPE, whose type Phi-3's files do not state. Null: the file has no factors.
json ReadLongRope(const GgufFiles& model, int64_t rotated) {
  constexpr FunctionKey kFactors[] = {{"rope_factors_long.weight", "long_factor"},
                                      {"rope_factors_short.weight", "short_factor"}};
  const GgufMetadata& metadata = model.metadata;
  json scaling{{"rope_type", "longrope"}};
  for (const auto& [gguf, hf] : kFactors) {
    const TensorInfo* tensor = FindTensor(model, gguf);
    if (tensor == nullptr) continue;
    scaling[hf] = ReadRotaryFactors(model, *tensor, rotated);
  }
  if (scaling.size() == 1) return nullptr;
  for (const auto& [gguf, hf] : kFactors) {
    if (scaling.contains(hf)) continue;
    Throw(ErrorKind::kFormat, "{}: expected the tensors {} and {}, found one of them",
          metadata.file_name(), kFactors[0].gguf, kFactors[1].gguf);
  }
  const std::string key = metadata.ArchitectureKey("rope.scaling.type");
  const std::string type = metadata.StringOr(key, "longrope");
  if (type != "longrope" && type != "none") {
    metadata.Refuse(key, fmt::format("longrope beside {}", kFactors[0].gguf), Quote(type),
                    ErrorKind::kUnsupported);
  }
  const std::string original = metadata.ArchitectureKey("rope.scaling.original_context_length");
  scaling["original_max_position_embeddings"] = metadata.Int(original, kSizeRange);
  constexpr FunctionKey kAttention[] = {{"rope.scaling.attn_factor", "attention_factor"}};
  ReadPresentKeys(metadata, kAttention, scaling);
  return scaling;
}

json ReadRope(const GgufFiles& model, const GgufShape& shape, const GgufFamily& family,
              double theta) {
  const int64_t rotated = model.metadata.IntOr(
      model.metadata.ArchitectureKey("rope.dimension_count"), shape.head_dim, {0, shape.head_dim});
  json scaling = ReadLongRope(model, rotated);
  if (!scaling.is_null()) return scaling;
  const TensorInfo* factors = FindTensor(model, "rope_freqs.weight");
  if (factors == nullptr || family.own_rotary_factors) return ReadScaling(model.metadata);
  return ReadLlama3(model, *factors, theta, rotated);
}

// Reads a list of KV heads, in which 0 stands for a layer with another mixer than attention.
void ReadListedKvHeads(const GgufMetadata& metadata, std::string_view key, GgufShape& shape) {
  for (const int64_t heads :
       ListOfLayers(metadata, "attention.head_count_kv", {0, kHeadCountRange.max})) {
    shape.keyless.push_back(heads == 0);
    if (heads == 0) continue;
    if (shape.kv_heads != 0 && heads != shape.kv_heads) {
      metadata.Refuse(key, "one number of KV heads, and 0 for layers without",
                      fmt::format("{} and {}", shape.kv_heads, heads), ErrorKind::kUnsupported);
    }
    shape.kv_heads = heads;
  }
  if (shape.kv_heads == 0) metadata.Refuse(key, "a layer with attention", "none");
}

// Reads what only Gemma's latest have.
void ReadGemmaTensors(const GgufFiles& model, const GgufFamily& family, GgufShape& shape) {
  const auto rows = [&](std::string_view name) {
    const TensorInfo* tensor = FindTensor(model, name);
    return tensor == nullptr || tensor->shape.empty() ? 0 : tensor->shape[0];
  };
  shape.layer_rows = rows("per_layer_token_embd.weight");
  shape.laurel_rank = rows("blk.0.laurel_l.weight");
  const TensorInfo* factors = FindTensor(model, "rope_freqs.weight");
  if (family.own_rotary_factors && factors != nullptr) {
    shape.rotary_factors = ReadRotaryFactors(model, *factors, shape.head_dim);
  }
  std::set<std::string_view> keys, values;
  for (const TensorInfo& tensor : model.tensors) {
    const std::string_view name = tensor.name;
    for (auto& [ending, found] : {std::pair(std::string_view(".attn_k.weight"), &keys),
                                  std::pair(std::string_view(".attn_v.weight"), &values)}) {
      if (name.ends_with(ending)) found->insert(name.substr(0, name.size() - ending.size()));
    }
  }
  shape.keys_are_values = !std::ranges::includes(values, keys);
}

// Whether any layer has the tensor. Layers of hybrids have different ones.
bool AnyLayerHas(const GgufFiles& model, std::string_view ending) {
  return std::ranges::any_of(
      model.tensors, [&](const TensorInfo& tensor) { return tensor.name.ends_with(ending); });
}

}  // namespace

bool HasSecondAttentionNorm(const GgufFiles& model) {
  return FindTensor(model, "blk.0.attn_norm_2.weight") != nullptr;
}

GgufShape ShapeOf(const GgufFiles& model, const GgufFamily& family) {
  const GgufMetadata& metadata = model.metadata;
  const TensorInfo* embedding = FindTensor(model, "token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    Throw(ErrorKind::kFormat, "{}: tensor token_embd.weight: expected a matrix, found {}",
          metadata.file_name(), embedding ? embedding->Describe() : "none");
  }
  GgufShape shape{.vocab_size = embedding->shape[0]};
  shape.heads = metadata.Int(metadata.ArchitectureKey("attention.head_count"), kHeadCountRange);
  const std::string kv_key = metadata.ArchitectureKey("attention.head_count_kv");
  if (family.keyless_layers && metadata.IsList(kv_key)) {
    ReadListedKvHeads(metadata, kv_key, shape);
  } else if (family.unequal_kv_heads && metadata.IsList(kv_key)) {
    shape.listed_kv_heads = ListOfLayers(metadata, "attention.head_count_kv", kHeadCountRange);
    shape.kv_heads = std::ranges::max(shape.listed_kv_heads);
  } else {
    shape.kv_heads = metadata.IntOr(kv_key, shape.heads, kHeadCountRange);
  }
  if (shape.heads % shape.kv_heads != 0) {
    metadata.Refuse(kv_key, fmt::format("a divisor of {} heads", shape.heads),
                    fmt::format("{}", shape.kv_heads));
  }
  const int64_t hidden = metadata.Int(metadata.ArchitectureKey("embedding_length"), kSizeRange);
  const std::string key_length = metadata.ArchitectureKey("attention.key_length");
  shape.head_dim = metadata.IntOr(key_length, hidden / shape.heads, kHeadCountRange);
  if (!metadata.Has(metadata.ArchitectureKey("attention.kv_lora_rank"))) {
    metadata.IntOr(metadata.ArchitectureKey("attention.value_length"), shape.head_dim,
                   {shape.head_dim, shape.head_dim});
  }
  shape.tied_head = FindTensor(model, "output.weight") == nullptr;
  shape.qkv_bias = AnyLayerHas(model, ".attn_q.bias") || AnyLayerHas(model, ".attn_qkv.bias");
  shape.attention_out_bias = AnyLayerHas(model, ".attn_output.bias");
  shape.latent_heads_apart = FindTensor(model, "blk.0.attn_k_b.weight") != nullptr;
  shape.mlp_bias = AnyLayerHas(model, ".ffn_up.bias");
  shape.qk_norm = FindTensor(model, "blk.0.attn_q_norm.weight") != nullptr;
  shape.mlp_norm = FindTensor(model, "blk.0.ffn_norm.weight") != nullptr;
  shape.second_attention_norm = HasSecondAttentionNorm(model);
  shape.convolution_bias = AnyLayerHas(model, ".ssm_conv1d.bias");
  shape.mamba_norm = AnyLayerHas(model, ".ssm_norm.weight");
  ReadGemmaTensors(model, family, shape);
  if (family.listed_widths && metadata.IsList(metadata.ArchitectureKey("feed_forward_length"))) {
    shape.mlp_widths = ListOfLayers(metadata, "feed_forward_length", {0, kSizeRange.max});
  }
  return shape;
}

std::string GgufConfig(const GgufFiles& model, const GgufShape& shape, const GgufFamily& family) {
  const GgufMetadata& metadata = model.metadata;
  const auto integer = [&](std::string_view key) {
    return metadata.Int(metadata.ArchitectureKey(key), kSizeRange);
  };
  const double theta =
      metadata.FloatOr(metadata.ArchitectureKey("rope.freq_base"), 10000, {1, kNumberRange.max});
  json config{{"model_type", family.model_type},
              {"vocab_size", shape.vocab_size},
              {"hidden_size", integer("embedding_length")},
              {"num_hidden_layers", ReadLayers(metadata).decoding},
              {"num_attention_heads", shape.heads},
              {"num_key_value_heads", shape.kv_heads},
              {"max_position_embeddings", integer("context_length")},
              {"tie_word_embeddings", shape.tied_head},
              {"rope_theta", theta},
              {"rope_scaling", ReadRope(model, shape, family, theta)}};
  if (metadata.Has(metadata.ArchitectureKey("attention.key_length")))
    config["head_dim"] = shape.head_dim;
  // Some files whose layers all have experts do not say how wide one MLP would be.
  if (!shape.mlp_widths.empty()) {
    config["intermediate_size"] = std::ranges::max(shape.mlp_widths);
  } else if (metadata.Has(metadata.ArchitectureKey("feed_forward_length")) ||
             !metadata.Has(metadata.ArchitectureKey("expert_feed_forward_length"))) {
    config["intermediate_size"] = integer("feed_forward_length");
  }
  constexpr FunctionKey kEpsilons[] = {
      {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
      {"attention.layer_norm_epsilon", "layer_norm_eps"},
      {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
  };
  ReadPresentKeys(metadata, kEpsilons, config, {0, 1});
  for (const auto& [gguf, hf] : kFunctionKeys) {
    const std::string own = metadata.ArchitectureKey(gguf);
    if (!metadata.Has(own)) continue;
    // Files say zero for none, where an absent field may mean a default.
    const double value = metadata.Float(own, kNumberRange);
    config[hf] = value == 0 ? json() : json(value);
  }
  if (!metadata.BoolOr(metadata.ArchitectureKey("attention.causal"), true))
    config["is_causal"] = false;
  if (metadata.FloatOr(metadata.ArchitectureKey("attention.max_alibi_bias"), 0, kNumberRange) !=
      0) {
    config["alibi"] = true;
  }
  if (metadata.Has(metadata.ArchitectureKey("rope.dimension_sections"))) config["use_mrope"] = true;
  family.complete(metadata, shape, config);
  return DumpJson(config);
}

}  // namespace godwit
