#include "model/hf_fields.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/name_list.h"
#include "base/nearest.h"
#include "tensor/dtype.h"

namespace godwit {
namespace {

constexpr FloatRange kFactorRange{1, 1e4};

void ReadYarn(const HfConfig& fields, RotaryScaling& scaling) {
  const double beta_fast = fields.FloatOr("beta_fast", 0, {0, 1e6});
  const double beta_slow = fields.FloatOr("beta_slow", 0, {0, 1e6});
  if (beta_fast != 0) scaling.beta_fast = beta_fast;
  if (beta_slow != 0) scaling.beta_slow = beta_slow;
  scaling.truncate = fields.BoolOr("truncate", true);
  const double mscale = fields.FloatOr("mscale", 0, {0, 100});
  const double mscale_all_dim = fields.FloatOr("mscale_all_dim", 0, {0, 100});
  const double magnitude =
      mscale != 0 && mscale_all_dim != 0
          ? YarnMagnitude(scaling.factor, mscale) / YarnMagnitude(scaling.factor, mscale_all_dim)
          : YarnMagnitude(scaling.factor, 1);
  scaling.attention_factor = fields.FloatOr("attention_factor", magnitude, {1e-3, 1e3});
}

// max_context: of the stretched model. Section 3 of LongRoPE sharpens its attention.
void ReadLongRope(const HfConfig& fields, int64_t rotary_dim, int64_t max_context,
                  RotaryScaling& scaling) {
  const auto original = static_cast<double>(scaling.original_context);
  scaling.factor =
      fields.FloatOr("factor", static_cast<double>(max_context) / original, kFactorRange);
  scaling.attention_factor = fields.FloatOr(
      "attention_factor",
      scaling.factor <= 1 ? 1 : std::sqrt(1 + std::log(scaling.factor) / std::log(original)),
      {1e-3, 1e3});
  if (fields.Has("short_mscale") || fields.Has("long_mscale")) {  // PhiMoE
    scaling.attention_factor = fields.Float("short_mscale", {1e-3, 1e3});
    if (fields.Float("long_mscale", {1e-3, 1e3}) != scaling.attention_factor) {
      fields.Refuse("long_mscale", "the same as short_mscale", ErrorKind::kUnsupported);
    }
  }
  const auto factors = [&](std::string_view key) {
    std::vector<double> list = fields.Floats(key, {1e-3, 1e6});
    if (std::ssize(list) == rotary_dim / 2) return list;
    fields.Refuse(
        key, fmt::format("a list of numbers, one for each of {} rotary pairs", rotary_dim / 2));
  };
  scaling.short_factors = factors("short_factor");
  scaling.long_factors = factors("long_factor");
}

int64_t Stretched(int64_t context, double factor) {
  return static_cast<int64_t>(static_cast<double>(context) * factor);
}

template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

constexpr Named<RotaryScaling::Kind> kScalingKinds[] = {
    {"default", RotaryScaling::Kind::kNone},    {"linear", RotaryScaling::Kind::kLinear},
    {"dynamic", RotaryScaling::Kind::kDynamic}, {"llama3", RotaryScaling::Kind::kLlama3},
    {"yarn", RotaryScaling::Kind::kYarn},       {"longrope", RotaryScaling::Kind::kLongRope},
    {"su", RotaryScaling::Kind::kLongRope}};

constexpr Named<ops::Activation> kActivations[] = {
    {"silu", ops::Activation::kSilu},          {"swish", ops::Activation::kSilu},
    {"gelu", ops::Activation::kGeluErf},       {"gelu_new", ops::Activation::kGeluTanh},
    {"gelu_fast", ops::Activation::kGeluTanh}, {"gelu_pytorch_tanh", ops::Activation::kGeluTanh},
    {"relu", ops::Activation::kRelu},          {"relu2", ops::Activation::kSquaredRelu}};

template <typename Value, size_t N>
Value ReadNamed(const HfConfig& config, std::string_view key, std::string_view fallback,
                const Named<Value> (&known)[N]) {
  const std::string name = config.StringOr(key, fallback);
  const auto found = std::ranges::find(known, name, &Named<Value>::name);
  if (found != std::end(known)) return found->value;
  std::vector<std::string> names;
  for (const auto& [known_name, value] : known) names.emplace_back(known_name);
  const auto nearest = Nearest(name, names);
  config.Refuse(key,
                NameList(known, &Named<Value>::name, " or ") +
                    (nearest ? fmt::format(" (did you mean {}?)", *nearest) : ""),
                ErrorKind::kUnsupported);
}

// Reads the scaling and stretches max_context.
void ReadScaling(const HfConfig& config, const HfConfig& fields, RotarySpec& rotary,
                 int64_t& max_context) {
  using Kind = RotaryScaling::Kind;
  RotaryScaling& scaling = rotary.scaling;
  const std::string_view key = fields.Has("rope_type") ? "rope_type" : "type";
  scaling.kind = ReadNamed(fields, key, "default", kScalingKinds);
  fields.MarkAsRead("type");  // the older name of rope_type, written beside it
  if (scaling.kind == Kind::kNone) return;

  constexpr std::string_view kOriginal = "original_max_position_embeddings";
  const bool long_rope = scaling.kind == Kind::kLongRope;
  const IntRange range{long_rope ? 2 : 1, kContextRange.max};
  if (long_rope && !config.Has(kOriginal)) fields.Int(kOriginal, range);  // has no default
  scaling.original_context =
      config.IntOr(kOriginal, fields.IntOr(kOriginal, max_context, range), range);
  if (long_rope) return ReadLongRope(fields, rotary.rotary_dim, max_context, scaling);

  scaling.factor = fields.Float("factor", kFactorRange);
  if (scaling.kind == Kind::kLinear) {
    max_context = Stretched(max_context, scaling.factor);
  } else if (scaling.kind == Kind::kDynamic) {
    max_context = Stretched(scaling.original_context, scaling.factor);
  } else if (scaling.kind == Kind::kLlama3) {
    scaling.low_freq_factor = fields.Float("low_freq_factor", {1e-3, 1e6});
    scaling.high_freq_factor = fields.Float("high_freq_factor", {1e-3, 1e6});
    if (scaling.high_freq_factor < scaling.low_freq_factor) {
      fields.Refuse("high_freq_factor", "low_freq_factor or more");
    }
  } else {
    ReadYarn(fields, scaling);
    max_context = std::max(max_context, Stretched(scaling.original_context, scaling.factor));
  }
}

void ReadTheta(const HfConfig& config, const HfConfig& fields, RotarySpec& rotary,
               int64_t& max_context) {
  rotary.theta = fields.FloatOr("rope_theta", rotary.theta, kThetaRange);
  ReadScaling(config, fields, rotary, max_context);
}

// Refuses windowed layers in a model without a window.
void RefuseWindowedLayers(const HfConfig& config, std::string_view why) {
  for (const std::string& type : config.Strings("layer_types")) {
    if (type != "full_attention") {
      config.Refuse("layer_types", fmt::format("full_attention for every layer, because {}", why));
    }
  }
}

// Fields of godwit's own (tools/pretrain), which no published family uses.
void ReadSinks(const HfConfig& config, DecoderSpec& spec) {
  const std::string sink = config.StringOr("attention_sink", "none");
  if (sink != "none" && sink != "softmax1") config.Refuse("attention_sink", "none or softmax1");
  spec.attention_sink = sink == "none" ? AttentionSink::kNone : AttentionSink::kSoftmax1;
  if (config.Has("sink_token_id")) {
    spec.sink_token = static_cast<int32_t>(config.Int("sink_token_id", {0, spec.vocab_size - 1}));
  }
}

}  // namespace

double YarnMagnitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

std::optional<HfConfig> RotaryFields(const HfConfig& config) {
  auto scaling = config.Object("rope_scaling");
  return scaling ? scaling : config.Object("rope_parameters");
}

void ReadRotary(const HfConfig& config, int64_t rotary_dim, std::string_view theta_key,
                DecoderSpec& spec, double default_theta) {
  spec.rotary.rotary_dim = rotary_dim / 2 * 2;
  spec.rotary.theta = config.FloatOr(theta_key, default_theta, kThetaRange);
  const auto fields = RotaryFields(config);
  if (fields) ReadTheta(config, *fields, spec.rotary, spec.max_context);
}

void ReadRotaryByWindow(const HfConfig& config, double default_theta, double window_theta,
                        DecoderSpec& spec) {
  const int64_t rotary_dim = spec.head_dim / 2 * 2;
  spec.rotary = {.rotary_dim = rotary_dim,
                 .theta = config.FloatOr("rope_theta", default_theta, kThetaRange)};
  RotarySpec windowed_rotary = {.rotary_dim = rotary_dim, .theta = window_theta};
  const auto parameters = config.Object("rope_parameters");
  const auto of_layers = [&](std::string_view type) {
    return parameters ? parameters->Object(type) : std::nullopt;
  };
  int64_t counted = spec.max_context;
  const auto scaling = config.Object("rope_scaling");
  if (scaling) ReadTheta(config, *scaling, spec.rotary, counted);
  const auto full = of_layers("full_attention");
  if (!scaling && full) ReadTheta(config, *full, spec.rotary, counted);
  const auto windowed = of_layers("sliding_attention");
  if (windowed) ReadTheta(config, *windowed, windowed_rotary, counted);
  if (windowed && DependsOnContext(windowed_rotary)) {
    windowed->Refuse(windowed->Has("rope_type") ? "rope_type" : "type",
                     "frequencies that do not depend on the context, for layers with a window",
                     ErrorKind::kUnsupported);
  }
  ChangeLayers(spec, [&](int64_t, LayerKind& kind) {
    kind.rotary = kind.window == 0 ? spec.rotary : windowed_rotary;
  });
}

int64_t ReadRotaryDim(const HfConfig& config, std::string_view key, double fallback,
                      const DecoderSpec& spec) {
  constexpr std::string_view kNewKey = "partial_rotary_factor";
  const auto parameters = config.Object("rope_parameters");
  const double fraction = parameters && parameters->Has(kNewKey)
                              ? parameters->Float(kNewKey, {0, 1})
                              : config.FloatOr(config.Has(key) ? key : kNewKey, fallback, {0, 1});
  config.MarkAsRead(kNewKey);  // may stand beside the older key
  return static_cast<int64_t>(static_cast<double>(spec.head_dim) * fraction);
}

std::vector<bool> ReadLayersWithoutPositions(const HfConfig& config, int64_t layers) {
  const int64_t period = config.IntOr("no_rope_layer_interval", 4, kLayerRange);
  const std::vector<int64_t> rotates = config.Ints("no_rope_layers", {0, 1});
  if (!rotates.empty() && std::ssize(rotates) < layers) {
    config.Refuse("no_rope_layers", fmt::format("one entry for each of {} layers", layers));
  }
  std::vector<bool> without;
  for (int64_t i = 0; i < layers; ++i) {
    without.push_back(rotates.empty() ? (i + 1) % period == 0 : rotates[i] == 0);
  }
  return without;
}

void ReadLocalExperts(const HfConfig& config, int64_t experts, int64_t per_token,
                      DecoderSpec& spec) {
  spec.mlp.experts = config.IntOr("num_local_experts", experts, kExpertRange);
  ReadExpertsPerToken(config, per_token, spec.mlp.experts, spec);
}

void ReadExpertsPerToken(const HfConfig& config, int64_t per_token, int64_t most, DecoderSpec& spec,
                         std::string_view key) {
  const IntRange range{1, most};
  spec.mlp.experts_per_token =
      most < per_token ? config.Int(key, range) : config.IntOr(key, per_token, range);
}

std::vector<bool> ReadLayersOfType(const HfConfig& config, std::string_view type,
                                   const std::vector<bool>& otherwise) {
  const std::vector<std::string> types = config.Strings("layer_types");
  if (types.empty()) return otherwise;
  if (types.size() != otherwise.size()) {
    config.Refuse("layer_types", fmt::format("one entry for each of {} layers", otherwise.size()));
  }
  std::vector<bool> layers;
  for (const std::string& found : types) {
    if (found != "full_attention" && found != type) {
      config.Refuse("layer_types", fmt::format("full_attention or {} for every layer", type));
    }
    layers.push_back(found == type);
  }
  return layers;
}

void ReadWindows(const HfConfig& config, const std::vector<bool>& windowed, DecoderSpec& spec,
                 int64_t default_window) {
  const int64_t window =
      config.IsNull("sliding_window")
          ? 0
          : config.IntOr("sliding_window", default_window, {0, kContextRange.max});
  if (window == 0) return RefuseWindowedLayers(config, "there is no sliding_window");
  const std::vector<bool> chosen = ReadLayersOfType(config, "sliding_attention", windowed);
  if (std::ranges::count(chosen, false) == 0) spec.window = window;  // the usual one
  ChangeLayers(spec, chosen, [&](LayerKind& kind) { kind.window = window; });
}

std::vector<bool> LayersWithoutWindow(const DecoderSpec& spec) {
  std::vector<bool> without;
  for (const int64_t window : OfEachLayer(spec, &LayerKind::window)) without.push_back(window == 0);
  return without;
}

void ReadWindows(const HfConfig& config, int64_t first_windowed, DecoderSpec& spec) {
  std::vector<bool> windowed;
  for (int64_t i = 0; i < spec.layers; ++i) windowed.push_back(i >= first_windowed);
  ReadWindows(config, windowed, spec);
}

void ReadStatedWindows(const HfConfig& config, DecoderSpec& spec) {
  if (config.Has("sliding_window")) ReadWindows(config, /*first_windowed=*/0, spec);
}

void ReadAlternatingWindows(const HfConfig& config, int64_t period, DecoderSpec& spec,
                            int64_t default_window) {
  std::vector<bool> windowed;
  for (int64_t i = 0; i < spec.layers; ++i) windowed.push_back((i + 1) % period != 0);
  ReadWindows(config, windowed, spec, default_window);
}

void ReadSwitchedWindows(const HfConfig& config, DecoderSpec& spec) {
  if (config.BoolOr("use_sliding_window", false)) {
    ReadWindows(config, config.IntOr("max_window_layers", 28, {0, kLayerRange.max}), spec);
  } else {
    config.MarkAsRead("sliding_window");
    RefuseWindowedLayers(config, "use_sliding_window is not true");
  }
}

float InStoredType(const HfConfig& config, float number) {
  const std::string type = config.StringOr("dtype", config.StringOr("torch_dtype", "float32"));
  return type == "bfloat16" ? ToFloat(ToBF16(number)) : number;
}

void ReadCommonFields(const HfConfig& config, DecoderSpec& spec, const CommonKeys& keys) {
  spec.family = config.model_type();
  const auto int_or = [&](std::string_view key, int64_t fallback, IntRange range) {
    return fallback == 0 ? config.Int(key, range) : config.IntOr(key, fallback, range);
  };
  spec.vocab_size = int_or("vocab_size", keys.default_vocab, kVocabRange);
  spec.hidden_size = config.Int(keys.hidden_size, kWidthRange);
  if (!keys.layers.empty()) spec.layers = config.Int(keys.layers, kLayerRange);
  spec.heads = int_or(keys.heads, keys.default_heads, kHeadRange);
  spec.kv_heads = spec.heads;
  if (!keys.kv_heads.empty()) {
    spec.kv_heads = config.IntOr(
        keys.kv_heads, keys.default_kv_heads == 0 ? spec.heads : keys.default_kv_heads, kHeadRange);
    if (spec.heads % spec.kv_heads != 0) {
      config.Refuse(keys.kv_heads, fmt::format("a divisor of {} heads", spec.heads));
    }
  }
  if (!keys.head_dim.empty() && config.Has(keys.head_dim)) {
    spec.head_dim = config.Int(keys.head_dim, kHeadDimRange);
  } else if (keys.default_head_dim != 0) {
    spec.head_dim = keys.default_head_dim;
  } else {
    if (spec.hidden_size % spec.heads != 0 || spec.hidden_size / spec.heads > kHeadDimRange.max) {
      config.Refuse(keys.heads, fmt::format("a divisor of {} {} into heads of at most {}",
                                            keys.hidden_size, spec.hidden_size, kHeadDimRange.max));
    }
    spec.head_dim = spec.hidden_size / spec.heads;
  }
  if (!keys.intermediate.empty()) {
    spec.mlp.intermediate = config.Int(keys.intermediate, kWidthRange);
  }
  if (!keys.activation.empty()) {
    spec.mlp.activation = ReadNamed(config, keys.activation, keys.default_activation, kActivations);
  }
  spec.max_context = config.IntOr(keys.max_context, 2048, kContextRange);
  spec.tied_head = config.BoolOr("tie_word_embeddings", keys.tied_by_default);
  ReadSinks(config, spec);
}

}  // namespace godwit
