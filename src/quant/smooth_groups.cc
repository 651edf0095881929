#include "quant/smooth_groups.h"

#include <numeric>
#include <utility>

#include "quant/linear_layers.h"

namespace godwit::quant {
namespace {

std::vector<int64_t> InOrder(int64_t n) {
  std::vector<int64_t> channels(n);
  std::iota(channels.begin(), channels.end(), 0);
  return channels;
}

class Finder {
 public:
  Finder(const DecoderSpec& spec, SmoothKind kind) : spec_(spec), kind_(kind) {}

  SmoothGroups Find(const ModelTensors& tensors) {
    if (kind_ == SmoothKind::kNone) return {};
    if (spec_.transposed) {
      return {.left_out = {{spec_.family, "its matrices are stored as [inputs, outputs]"}}};
    }
    for (size_t i = 0; i < tensors.layers.size(); ++i) {
      const LayerTensors& layer = tensors.layers[i];
      if (kind_ == SmoothKind::kAll) {
        const LayerKind& kind = KindOf(spec_, static_cast<int64_t>(i));
        if (spec_.latent && HasAttention(kind)) {
          found_.left_out.push_back(
              {ModuleName(layer.attention_out), "values are computed from a latent vector"});
        } else if (spec_.value_norm) {
          found_.left_out.push_back(
              {ModuleName(layer.attention_out), "values are normalised, which undoes a factor"});
        } else if (HasAttention(kind)) {
          ValueGroup(layer);
        }
        if (IsRecurrent(kind)) {
          const bool own = !layer.mamba.out.parts.empty();
          found_.left_out.push_back({ModuleName(own ? layer.mamba.out : layer.attention_out),
                                     "its input is no mean of values"});
        }
        if (!layer.mlp.up.parts.empty()) {
          MlpGroup(layer.experts.empty() ? kind.mlp : kind.shared_mlp, layer.mlp);
        }
        for (const MlpTensors& expert : layer.experts) MlpGroup(kind.mlp, expert);
      }
      NormGroups(layer);
    }
    return std::move(found_);
  }

 private:
  void Add(const std::string& from, SmoothGroup group);
  void AddResidual(std::vector<const LinearTensors*> linears);
  void NormGroups(const LayerTensors& layer);
  void NormGroup(const NormTensors& norm, std::vector<const LinearTensors*> linears);
  void ValueGroup(const LayerTensors& layer);
  void MlpGroup(const MlpSpec& spec, const MlpTensors& mlp);

  const DecoderSpec& spec_;
  const SmoothKind kind_;
  SmoothGroups found_;
};

// Names the layers that read the channels: "a.input_layernorm -> q_proj, k_proj, v_proj".
void Finder::Add(const std::string& from, SmoothGroup group) {
  group.name = from + " ->";
  for (const LinearTensors* linear : group.linears) {
    for (const MatrixPart& part : PartsOf(*linear)) {
      // Experts share their names.
      const std::string name = LastName(ModuleName(part));
      if (group.name.find(" " + name) != std::string::npos) continue;
      group.name += (group.name.ends_with("->") ? " " : ", ") + name;
    }
  }
  found_.groups.push_back(std::move(group));
}

void Finder::AddResidual(std::vector<const LinearTensors*> linears) {
  const int64_t size = spec_.hidden_size;
  found_.residual.push_back({.name = ModuleName(*linears.front()),
                             .channels = size,
                             .linears = std::move(linears),
                             .input_channels = InOrder(size)});
}

void Finder::NormGroups(const LayerTensors& layer) {
  const bool shared = spec_.topology == Topology::kParallelSharedNorm;
  std::vector<const LinearTensors*> mlp;
  if (!layer.experts.empty()) mlp.push_back(&layer.router);
  if (!layer.shared_share.parts.empty()) mlp.push_back(&layer.shared_share);
  if (!layer.mlp.up.parts.empty()) mlp.push_back(&layer.mlp.up);
  if (!layer.experts_in.parts.empty()) {
    mlp.push_back(&layer.experts_in);
  } else {
    for (const MlpTensors& expert : layer.experts) mlp.push_back(&expert.up);
  }

  std::vector<const LinearTensors*> attention;
  if (!layer.qkv.parts.empty()) attention.push_back(&layer.qkv);
  if (!layer.mamba.in.parts.empty()) attention.push_back(&layer.mamba.in);
  for (const LinearTensors* linear :
       {&layer.delta.gates, &layer.delta.decay_down, &layer.delta.z_down}) {
    if (!linear->parts.empty()) attention.push_back(linear);
  }
  if (spec_.latent && !layer.latent.kv_down.parts.empty()) {
    const LatentTensors& latent = layer.latent;
    const bool narrow = spec_.latent->query_rank > 0;
    attention = {narrow ? &latent.query_down : &latent.query, &latent.kv_down};
    // Outputs of kv_down's norm are cached, and read as keys and as values, so only the queries'
    // norm counts.
    const bool index = !latent.index_key.parts.empty();
    if (index) attention.insert(attention.end(), {&latent.index_key, &latent.index_weights});
    std::vector<const LinearTensors*> narrow_readers = {&latent.query};
    if (index) narrow_readers.push_back(&latent.index_query);
    if (narrow) NormGroup(latent.query_norm, narrow_readers);
  }
  // A product beside attention reads the norm's output and adds it to the stream.
  if (spec_.streams) {
    found_.left_out.push_back(
        {ModuleName(*layer.attention_norm.weight), "the residual stream also reads this norm"});
    return NormGroup(layer.mlp_norm, mlp);
  }
  if (spec_.branch_norms) {
    // Each branch has a norm of its own. The router's is not a tensor with the name of a norm.
    std::vector<const LinearTensors*> experts;
    for (const MlpTensors& expert : layer.experts) experts.push_back(&expert.up);
    NormGroup(layer.experts_norm, std::move(experts));
    mlp = {&layer.mlp.up};
  }
  if (shared) attention.insert(attention.end(), mlp.begin(), mlp.end());
  if (!attention.empty()) NormGroup(layer.attention_norm, attention);
  if (!shared && !mlp.empty()) NormGroup(layer.mlp_norm, mlp);
}

void Finder::NormGroup(const NormTensors& norm, std::vector<const LinearTensors*> linears) {
  const std::string reader = ModuleName(*linears.front());
  if (norm.weight == nullptr) {
    found_.left_out.push_back({reader, norm.size == 0
                                           ? "it has no norm before it"
                                           : "the norm before it has no gain to divide"});
    if (norm.size == 0) AddResidual(std::move(linears));
    return;
  }
  const std::string name = ModuleName(*norm.weight);
  if (spec_.topology == Topology::kPostNorm) {
    // The residual stream reads this norm's output, besides the layers behind the other norm.
    found_.left_out.push_back({name, "the residual stream also passes through this norm"});
    AddResidual(std::move(linears));
    return;
  }
  if (spec_.norm_gain_less_one) {
    // A quotient - 1 would be rounded in the type of the gain - 1, and no factor leaves it exact.
    found_.left_out.push_back({name, "its gain is stored minus 1, which cannot be divided"});
    return;
  }
  SmoothGroup group{
      .channels = norm.size, .linears = std::move(linears), .input_channels = InOrder(norm.size)};
  group.divided.push_back({WholeTensor(*norm.weight), InOrder(norm.size)});
  if (norm.bias != nullptr) {
    group.divided.push_back({WholeTensor(*norm.bias), InOrder(norm.size)});
  }
  Add(name, std::move(group));
}

// Smooths the values: attention's output is a mean of values, channel by channel. The query heads
// of a group read the same KV head, so they share its channels.
void Finder::ValueGroup(const LayerTensors& layer) {
  const LinearTensors& qkv = layer.qkv;
  const int64_t dim = spec_.head_dim;
  const int64_t group_heads = spec_.heads / spec_.kv_heads;
  const int64_t q_rows = spec_.heads * dim, kv_rows = spec_.kv_heads * dim;
  const std::string name = ModuleName(*qkv.parts.back());
  if (spec_.clip_qkv) {
    found_.left_out.push_back({name, "values are clipped to a range, which is not linear"});
    return;
  }
  std::vector<int64_t> rows;  // of the tensor that holds v
  switch (spec_.qkv_layout) {
    case QkvLayout::kSeparate:
      rows = InOrder(kv_rows);
      break;
    case QkvLayout::kFused:
      rows.assign(q_rows + kv_rows, kNoChannel);
      for (int64_t i = 0; i < kv_rows; ++i) rows.push_back(i);
      break;
    case QkvLayout::kGrouped:
      for (int64_t head = 0; head < spec_.kv_heads; ++head) {
        rows.insert(rows.end(), static_cast<size_t>((group_heads + 1) * dim), kNoChannel);
        for (int64_t d = 0; d < dim; ++d) rows.push_back(head * dim + d);
      }
      break;
  }
  SmoothGroup group{.channels = kv_rows, .linears = {&layer.attention_out}};
  group.divided.push_back({WholeTensor(*qkv.parts.back()), rows});
  if (!qkv.biases.empty()) group.divided.push_back({WholeTensor(*qkv.biases.back()), rows});
  for (int64_t i = 0; i < q_rows; ++i) {
    group.input_channels.push_back(i / dim / group_heads * dim + i % dim);
  }
  Add(name, std::move(group));
}

// Smooths the MLP's inner channels: act(gate) * up is linear in up, and relu(up / s) is relu(up) /
// s.
void Finder::MlpGroup(const MlpSpec& spec, const MlpTensors& mlp) {
  const std::vector<MatrixPart> parts = PartsOf(mlp.up);
  const std::string name = ModuleName(parts.back());
  const int64_t size = spec.intermediate;
  if (spec.clamped || spec.xielu || (!spec.gated && spec.activation != ops::Activation::kRelu)) {
    found_.left_out.push_back({name, "its activation is not linear"});
    return;
  }
  std::vector<int64_t> rows;  // of the tensor that holds up
  if (parts.back().rows > size) rows.assign(size, kNoChannel);
  for (int64_t i = 0; i < size; ++i) rows.push_back(i);
  SmoothGroup group{.channels = size, .linears = {&mlp.down}, .input_channels = InOrder(size)};
  group.divided.push_back({parts.back(), rows});
  const std::vector<MatrixPart> biases = BiasesOf(mlp.up);
  if (!biases.empty()) group.divided.push_back({biases.back(), rows});
  Add(name, std::move(group));
}

}  // namespace

SmoothGroups FindSmoothGroups(const DecoderSpec& spec, const ModelTensors& tensors,
                              SmoothKind kind) {
  return Finder(spec, kind).Find(tensors);
}

}  // namespace godwit::quant
