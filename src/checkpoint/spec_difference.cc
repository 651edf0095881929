#include "checkpoint/spec_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace godwit {
namespace {

bool IsClose(double a, double b) {
  return a == b || std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

std::string Text(double value) { return fmt::format("{:.7g}", value); }

// Keeps the first difference.
class SpecComparer {
 public:
  void Number(std::string_view what, double wanted, double found) {
    if (!IsClose(wanted, found)) Differ(what, Text(wanted), Text(found));
  }

  template <typename T>
  void Number(std::string_view what, const std::optional<T>& wanted,
              const std::optional<T>& found) {
    if (wanted.has_value() != found.has_value() ||
        (wanted && !IsClose(static_cast<double>(*wanted), static_cast<double>(*found)))) {
      const auto text = [](const std::optional<T>& value) {
        return value ? Text(static_cast<double>(*value)) : "none";
      };
      Differ(what, text(wanted), text(found));
    }
  }

  // Compares enumerations and switches.
  template <typename T>
  void Kind(std::string_view what, T wanted, T found) {
    if (wanted == found) return;
    if constexpr (std::is_same_v<T, bool>) {
      Differ(what, wanted ? "yes" : "no", found ? "yes" : "no");
    } else {
      Differ(what);
    }
  }

  template <typename T>
  void List(std::string_view what, const std::vector<T>& wanted, const std::vector<T>& found) {
    bool same = wanted.size() == found.size();
    for (size_t i = 0; same && i < wanted.size(); ++i) {
      same = IsClose(static_cast<double>(wanted[i]), static_cast<double>(found[i]));
    }
    if (!same) Differ(what);
  }

  std::optional<std::string> Take() { return std::move(first_); }

 private:
  void Differ(std::string_view what, std::string_view wanted, std::string_view found) {
    if (!first_) first_ = fmt::format("{}: {} would be read back as {}", what, wanted, found);
  }
  void Differ(std::string_view what) {
    if (!first_) first_ = fmt::format("{}: another value would be read back", what);
  }

  std::optional<std::string> first_;
};

void CompareRotary(const RotarySpec& a, const RotarySpec& b, SpecComparer& c) {
  c.Number("dimensions that rotate", a.rotary_dim, b.rotary_dim);
  if (a.rotary_dim == 0) return;
  c.Number("rope theta", a.theta, b.theta);
  const RotaryScaling& s = a.scaling;
  const RotaryScaling& t = b.scaling;
  c.Kind("the kind of rope scaling", s.kind, t.kind);
  if (s.kind == RotaryScaling::Kind::kNone) return;
  using Kind = RotaryScaling::Kind;
  if (s.kind != Kind::kLongRope) c.Number("the factor of rope scaling", s.factor, t.factor);
  if (s.kind != Kind::kLinear) {
    c.Number("the original context of rope scaling", s.original_context, t.original_context);
  }
  c.Number("low_freq_factor", s.low_freq_factor, t.low_freq_factor);
  c.Number("high_freq_factor", s.high_freq_factor, t.high_freq_factor);
  c.Number("beta_fast", s.beta_fast, t.beta_fast);
  c.Number("beta_slow", s.beta_slow, t.beta_slow);
  c.Kind("whether the ramp of YaRN is cut off", s.truncate, t.truncate);
  c.Number("the attention factor of rope scaling", s.attention_factor, t.attention_factor);
  c.List("short rope factors", s.short_factors, t.short_factors);
  c.List("long rope factors", s.long_factors, t.long_factors);
  c.Number("the growth of queries by position", a.temperature.growth, b.temperature.growth);
}

void CompareMlp(const MlpSpec& a, const MlpSpec& b, SpecComparer& c) {
  c.Number("the width of the MLP", a.intermediate, b.intermediate);
  if (a.intermediate == 0) return;
  c.Kind("a gate in the MLP", a.gated, b.gated);
  c.Kind("the activation", a.activation, b.activation);
  c.Kind("xIELU in the MLP", a.xielu, b.xielu);
  c.Kind("biases in the MLP", a.bias, b.bias);
  c.Number("the scale of gates in the MLP", a.gate_scale, b.gate_scale);
  c.Number("the scale of the MLP", a.out_scale, b.out_scale);
  c.Kind("a limit in the MLP", a.clamped.has_value(), b.clamped.has_value());
  c.Number("experts", a.experts, b.experts);
  c.Number("experts of a token", a.experts_per_token, b.experts_per_token);
  c.Number("the width of what experts read", a.latent, b.latent);
  if (a.experts == 0) return;
  c.Kind("a bias of the router", a.router_bias, b.router_bias);
  c.Kind("shares among the chosen experts", a.shares_among_chosen, b.shares_among_chosen);
  c.Kind("the number by which experts are chosen", a.choice.score, b.choice.score);
  c.Kind("shares among near scores", a.choice.near_scores > 0, b.choice.near_scores > 0);
  c.Kind("shares of inputs", a.choice.scales_input, b.choice.scales_input);
  c.Number("groups of experts", a.choice.groups, b.choice.groups);
  c.Number("the scale of shares", a.choice.share_scale, b.choice.share_scale);
  c.Kind("a bias of the choice", a.choice_bias, b.choice_bias);
}

// The kinds of one layer.
void CompareKinds(const LayerKind& a, const LayerKind& b, SpecComparer& c) {
  CompareRotary(a.rotary, b.rotary, c);
  CompareMlp(a.mlp, b.mlp, c);
  if (a.mlp.experts > 0) CompareMlp(a.shared_mlp, b.shared_mlp, c);
}

// Numbers of all layers' kinds.
void CompareLayers(std::string_view what, const DecoderSpec& a, const DecoderSpec& b,
                   const std::function<int64_t(const LayerKind&)>& number, SpecComparer& c) {
  c.List(what, OfEachLayer(a, number), OfEachLayer(b, number));
}

void CompareAttention(const DecoderSpec& a, const DecoderSpec& b, SpecComparer& c) {
  c.Number("heads", a.heads, b.heads);
  c.Number("KV heads", a.kv_heads, b.kv_heads);
  c.Number("the size of a head", a.head_dim, b.head_dim);
  c.Kind("latent attention", a.latent.has_value(), b.latent.has_value());
  c.Kind("an index of keys", a.key_index.has_value(), b.key_index.has_value());
  c.Kind("rotary pairs side by side", a.interleaved_rotary, b.interleaved_rotary);
  c.Kind("biases of q, k and v", a.qkv_bias, b.qkv_bias);
  c.Kind("a bias after attention", a.attention_out_bias, b.attention_out_bias);
  c.Number("the limit of q, k and v", a.clip_qkv, b.clip_qkv);
  c.Kind("norms of q and k", a.qk_norm, b.qk_norm);
  const auto scale = [](const DecoderSpec& spec) {
    return spec.score_scale.value_or(1 / std::sqrt(static_cast<float>(spec.head_dim)));
  };
  c.Number("the scale of scores", scale(a), scale(b));
  c.Number("the cap of scores", a.score_cap, b.score_cap);
  c.Kind("attention sinks", a.attention_sink, b.attention_sink);
  CompareRotary(a.rotary, b.rotary, c);
  const auto turns = [](const LayerKind& kind) { return kind.rotary.rotary_dim; };
  CompareLayers("layers with other rotations", a, b, turns, c);
  c.List("slopes of ALiBi", a.alibi.slopes, b.alibi.slopes);
  c.Number("the scale of ALiBi", a.alibi.scale, b.alibi.scale);
  c.Kind("ALiBi in bf16", a.alibi.in_bf16, b.alibi.in_bf16);
  CompareLayers("windows of layers", a, b, &LayerKind::window, c);
  c.Kind("chunks in place of windows", a.chunked, b.chunked);
}

}  // namespace

std::optional<std::string> SpecDifference(const DecoderSpec& a, const DecoderSpec& b) {
  SpecComparer c;
  c.Number("the vocabulary", a.vocab_size, b.vocab_size);
  c.Number("the hidden size", a.hidden_size, b.hidden_size);
  c.Number("layers", a.layers, b.layers);
  c.Number("the context", a.max_context, b.max_context);
  c.Kind("the kind of norm", a.norm, b.norm);
  c.Number("the epsilon of norms", a.norm_epsilon, b.norm_epsilon);
  c.Kind("weights of norms", a.norm_gain, b.norm_gain);
  c.Kind("biases of norms", a.norm_bias, b.norm_bias);
  c.Kind("how attention and MLP follow each other", a.topology, b.topology);
  const auto before = [](const LayerKind& kind) { return int64_t{kind.input_norms}; };
  CompareLayers("norms before blocks", a, b, before, c);
  const auto after = [](const LayerKind& kind) { return int64_t{kind.output_norms}; };
  CompareLayers("norms after blocks", a, b, after, c);
  c.Kind("a norm at the end", a.final_norm, b.final_norm);
  c.Number("the scale of layers", a.residual_scale, b.residual_scale);
  c.Number("the width of embeddings", a.embedding_size, b.embedding_size);
  c.Number("the scale of embeddings", a.embedding_scale, b.embedding_scale);
  c.Kind("a norm of embeddings", a.embedding_norm, b.embedding_norm);
  c.Number("learned positions", a.first_learned_position, b.first_learned_position);
  CompareAttention(a, b, c);
  const auto mixer = [](const LayerKind& kind) { return static_cast<int64_t>(kind.mixer); };
  CompareLayers("what mixes tokens in layers", a, b, mixer, c);
  const auto taps = [](const LayerKind& kind) { return kind.convolution.taps; };
  CompareLayers("taps of convolutions", a, b, taps, c);
  c.Kind("biases of convolutions", a.convolution.bias, b.convolution.bias);
  c.Kind("gates of attention", a.gated_attention, b.gated_attention);
  const auto states = [](const LayerKind& kind) { return kind.delta.shape.state_floats(); };
  CompareLayers("states of gated DeltaNet", a, b, states, c);
  const auto decays = [](const LayerKind& kind) { return kind.delta.shape.decays(); };
  CompareLayers("decays of gated DeltaNet", a, b, decays, c);
  const auto mamba = [](const LayerKind& kind) { return kind.mamba.shape.state_floats(); };
  CompareLayers("states of Mamba2", a, b, mamba, c);
  const auto beside = [](const LayerKind& kind) { return int64_t{kind.attention_beside}; };
  CompareLayers("layers with attention beside Mamba2", a, b, beside, c);
  c.Number("the scale of attention", a.attention_scale, b.attention_scale);
  const auto gated = [](const LayerKind& kind) { return int64_t{kind.shared_gated}; };
  CompareLayers("layers whose shared expert has a gate", a, b, gated, c);
  CompareKinds(a, b, c);
  const auto dense = [](const LayerKind& kind) { return kind.mlp.experts == 0; };
  CompareLayers("layers without experts", a, b, dense, c);
  for (int64_t i = 0; i < std::min(a.layers, b.layers); ++i) {
    CompareKinds(KindOf(a, i), KindOf(b, i), c);
  }
  c.Kind("an output head of its own", !a.tied_head, !b.tied_head);
  c.Kind("a bias of the output head", a.head_bias, b.head_bias);
  c.Number("the scale of logits", a.logit_scale, b.logit_scale);
  c.Number("the cap of logits", a.logit_cap, b.logit_cap);
  return c.Take();
}

}  // namespace godwit
