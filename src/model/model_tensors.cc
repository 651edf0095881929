#include "model/model_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "model/tensor_resolver.h"

namespace godwit {

NormTensors Resolver::Norm(const std::string& module, int64_t size, bool bias) {
  const bool gain = spec_.norm_gain;
  const std::string name = NormName(module);
  return {.size = size,
          .weight = gain ? tensors_.Want(name + ".weight", {size}) : nullptr,
          .bias = gain && bias ? tensors_.Want(name + ".bias", {size}) : nullptr};
}

std::string Resolver::NormName(const std::string& module) const {
  for (const auto& [here, there] : spec_.names.renamed_norms) {
    if (!module.ends_with(here) || tensors_.Find(module + ".weight") != nullptr) continue;
    std::string other = module.substr(0, module.size() - here.size()) + there;
    if (tensors_.Find(other + ".weight") != nullptr) return other;
  }
  return module;
}

std::string Resolver::Numbered(const std::string& pattern, int64_t layer, int64_t expert) const {
  if (!spec_.predicts || layer != spec_.layers) {
    return fmt::format(fmt::runtime(pattern), layer, expert);
  }
  constexpr std::string_view kLayer = "model.layers.{}";
  const size_t begin = pattern.find(kLayer);
  assert(begin != std::string::npos);
  return spec_.prediction->layer +
         fmt::format(fmt::runtime(pattern.substr(begin + kLayer.size())), expert);
}

MlpTensors Resolver::Mlp(const MlpSpec& mlp, const MlpNames& names, int64_t layer, int64_t expert) {
  std::vector<std::pair<std::string, int64_t>> up;
  if (mlp.gated && !mlp.fused) {
    up.emplace_back(Numbered(names.gate, layer, expert), mlp.intermediate);
  }
  up.emplace_back(Numbered(names.up, layer, expert),
                  mlp.gated && mlp.fused ? 2 * mlp.intermediate : mlp.intermediate);
  const int64_t width = mlp.latent > 0 ? mlp.latent : spec_.hidden_size;
  return {.up = linears_.Find(up, width, mlp.bias, spec_.transposed),
          .down = linears_.Find({{Numbered(names.down, layer, expert), width}}, mlp.intermediate,
                                mlp.bias, spec_.transposed)};
}

MlpTensors Resolver::StackedExpert(const MlpSpec& mlp, int64_t layer, int64_t expert) {
  assert(mlp.gated && mlp.fused);
  MlpTensors tensors{.up = linears_.FindStacked(Numbered(spec_.names.up, layer), mlp,
                                                2 * mlp.intermediate, spec_.hidden_size, expert),
                     .down = linears_.FindStacked(Numbered(spec_.names.down, layer), mlp,
                                                  spec_.hidden_size, mlp.intermediate, expert)};
  tensors.up.alternating = mlp.alternating;
  for (const std::string& name : {spec_.names.per_expert_gate, spec_.names.per_expert_up}) {
    tensors.up.apart.push_back(tensors_.Name(Numbered(name, layer, expert)));
  }
  tensors.down.apart = {tensors_.Name(Numbered(spec_.names.per_expert_down, layer, expert))};
  return tensors;
}

std::vector<MlpTensors> Resolver::Experts(int64_t layer) {
  const ModuleNames& names = spec_.names;
  const MlpSpec& stored = KindOf(spec_, layer).mlp;
  MlpSpec mlp = stored;
  MlpNames own{.gate = names.gate, .up = names.up, .down = names.down};
  bool stacked = false;
  if (mlp.stacked) {
    // Formats of quantized checkpoints are for matrices, so each expert has its own tensors there.
    // So have experts that stay in float, although config.json does not say so.
    const std::string down = Numbered(names.per_expert_down, layer);
    stacked = tensors_.Find(down + ".weight") == nullptr &&
              tensors_.Find(down + ".weight_packed") == nullptr;
    own = {.gate = names.per_expert_gate, .up = names.per_expert_up, .down = names.per_expert_down};
    mlp.fused = false;
  }
  std::vector<MlpTensors> experts;
  for (int64_t i = 0; i < mlp.experts; ++i) {
    experts.push_back(stacked ? StackedExpert(stored, layer, i) : Mlp(mlp, own, layer, i));
  }
  return experts;
}

void Resolver::BranchNorms(int64_t index, LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  const auto norm = [&](const std::string& pattern) {
    return Norm(Numbered(pattern, index), hidden, spec_.norm_bias);
  };
  layer.experts_norm = norm(names.experts_norm);
  layer.experts_out_norm = norm(names.experts_out_norm);
  layer.shared_out_norm = norm(names.shared_out_norm);
  layer.router_gains = tensors_.Want(Numbered(names.router_gains, index), {hidden});
  layer.expert_scales =
      tensors_.Want(Numbered(names.expert_scales, index), {KindOf(spec_, index).mlp.experts});
}

void Resolver::Streams(int64_t index, LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const StreamsSpec& streams = *spec_.streams;
  const int64_t hidden = spec_.hidden_size, n = streams.count;
  const auto find = [&](const std::string& pattern, int64_t outputs, int64_t inputs) {
    return linears_.Find({{Numbered(pattern, index), outputs}}, inputs, /*bias=*/false);
  };
  layer.stream_norm = Norm(Numbered(names.stream_norm, index), hidden, spec_.norm_bias);
  layer.stream_router = find(names.stream_router, n, hidden);
  layer.stream_predict = find(names.stream_predict, n * n, n);
  layer.stream_correct = find(names.stream_correct, n, n);
  layer.stream_factors = tensors_.Want(Numbered(names.stream_factors, index), {hidden});
  layer.laurel_down = find(names.laurel_down, streams.narrow, hidden);
  layer.laurel_up = find(names.laurel_up, hidden, streams.narrow);
  layer.laurel_norm = Norm(Numbered(names.laurel_norm, index), hidden, spec_.norm_bias);
}

// The tensors of what follows a layer's MLP.
void Resolver::LayerEnd(int64_t index, LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  if (spec_.layer_embedding) {
    const int64_t width = spec_.layer_embedding->width;
    layer.embedding_gate =
        linears_.Find({{Numbered(names.layer_gate, index), width}}, hidden, /*bias=*/false);
    layer.embedding_out =
        linears_.Find({{Numbered(names.layer_out, index), hidden}}, width, /*bias=*/false);
    layer.embedding_out_norm = Norm(Numbered(names.layer_out_norm, index), hidden, spec_.norm_bias);
  }
  if (spec_.layer_scales) layer.scale = tensors_.Want(Numbered(names.layer_scale, index), {1});
}

LayerTensors Resolver::Layer(int64_t index) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  const auto norm = [&](const std::string& pattern) {
    return Norm(Numbered(pattern, index), hidden, spec_.norm_bias);
  };
  const LayerKind& kind = KindOf(spec_, index);
  const bool mixes = kind.mixer != Mixer::kNone, has_mlp = HasMlp(kind);
  const bool shared = spec_.topology == Topology::kParallelSharedNorm;
  LayerTensors layer;
  if (kind.input_norms) {
    if (mixes) layer.attention_norm = norm(names.attention_norm);
    if (has_mlp && !shared) layer.mlp_norm = norm(names.mlp_norm);
  }
  if (kind.output_norms) {
    if (mixes) layer.attention_out_norm = norm(names.attention_out_norm);
    if (has_mlp) layer.mlp_out_norm = norm(names.mlp_out_norm);
  }
  Mixing(index, layer);
  LayerEnd(index, layer);
  if (spec_.streams) Streams(index, layer);
  if (has_mlp) MlpOrExperts(index, layer);
  return layer;
}

void Resolver::MlpOrExperts(int64_t index, LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  const LayerKind& kind = KindOf(spec_, index);
  const MlpSpec& mlp = kind.mlp;
  const MlpNames own{.gate = names.gate, .up = names.up, .down = names.down};
  const MlpNames dense{.gate = names.dense_gate, .up = names.dense_up, .down = names.dense_down};
  if (mlp.experts == 0) {
    layer.mlp = Mlp(mlp, spec_.mlp.experts > 0 ? dense : own, index);
    if (!mlp.xielu) return;
    for (const char* number : {"alpha_p", "alpha_n", "beta", "eps"}) {
      layer.xielu.push_back(tensors_.Want(
          fmt::format("{}.{}", Numbered(names.xielu, index), number), {1}, Content::kScale));
    }
    return;
  }
  layer.router =
      linears_.Find({{Numbered(names.router, index), mlp.experts}}, hidden, mlp.router_bias);
  if (mlp.choice_bias)
    layer.choice_bias =
        tensors_.Want(Numbered(names.choice_bias, index), {mlp.experts}, Content::kScale);
  if (mlp.latent > 0) {
    layer.experts_in =
        linears_.Find({{Numbered(names.experts_in, index), mlp.latent}}, hidden, /*bias=*/false);
    layer.experts_out =
        linears_.Find({{Numbered(names.experts_out, index), hidden}}, mlp.latent, /*bias=*/false);
  }
  layer.experts = Experts(index);
  if (spec_.branch_norms) BranchNorms(index, layer);
  if (kind.shared_mlp.intermediate > 0) {
    layer.mlp =
        Mlp(kind.shared_mlp, {names.shared_gate, names.shared_up, names.shared_down}, index);
    if (kind.shared_gated) {
      layer.shared_share =
          linears_.Find({{Numbered(names.shared_share, index), 1}}, hidden, /*bias=*/false);
    }
  }
}

void Resolver::LayerTable(ModelTensors& tensors) {
  const ModuleNames& names = spec_.names;
  const LayerEmbedding& embedding = *spec_.layer_embedding;
  const int64_t width = embedding.layers * embedding.width;
  tensors.layer_table = tensors_.Want(names.layer_table + ".weight", {embedding.vocab_size, width});
  tensors.layer_model = linears_.Find({{names.layer_model, width}}, spec_.hidden_size, false);
  tensors.layer_model_norm = Norm(names.layer_model_norm, embedding.width, spec_.norm_bias);
}

PredictionTensors Resolver::Prediction() {
  const godwit::Prediction& names = *spec_.prediction;
  const int64_t hidden = spec_.hidden_size;
  PredictionTensors tensors;
  tensors.embedding_norm = Norm(names.embedding_norm, hidden, spec_.norm_bias);
  tensors.output_norm = Norm(names.output_norm, hidden, spec_.norm_bias);
  tensors.join = linears_.Find({{names.join, hidden}}, 2 * hidden, /*bias=*/false);
  tensors.layer = Layer(spec_.layers);
  tensors.norm = Norm(names.norm, hidden, spec_.norm_bias);
  return tensors;
}

void Resolver::Embedding(ModelTensors& tensors) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  const int64_t width = spec_.embedding_size.value_or(hidden);
  const TensorInfo* embedding =
      tensors_.Want(names.embedding + ".weight", {spec_.vocab_size, width});
  if (spec_.tied_head) {
    tensors.head.parts = {embedding};
  } else {
    tensors.head = linears_.Find({{names.head, spec_.vocab_size}}, width, spec_.head_bias);
    if (embedding != nullptr && embedding->blocks != nullptr) {
      tensors.embedding_blocks.parts = {embedding};
    } else {
      tensors.embedding = embedding;
    }
  }
  if (spec_.embedding_norm) {
    tensors.embedding_norm = Norm(names.embedding_norm, hidden, spec_.norm_bias);
  }
  if (spec_.first_learned_position) {
    tensors.positions = tensors_.Want(names.positions + ".weight",
                                      {*spec_.first_learned_position + spec_.max_context, hidden});
  }
  if (spec_.layer_embedding) LayerTable(tensors);
  for (int64_t i = 0; spec_.streams && i < spec_.streams->count - 1; ++i) {
    tensors.streams_in.push_back(
        linears_.Find({{Numbered(names.streams_in, i), hidden}}, hidden, false));
    tensors.streams_out.push_back(
        linears_.Find({{Numbered(names.streams_out, i), hidden}}, hidden, false));
  }
  if (spec_.embedding_size) {
    tensors.project_in = linears_.Find({{names.project_in, hidden}}, width, false);
    tensors.project_out = linears_.Find({{names.project_out, width}}, hidden, false);
  }
}

ModelTensors Resolver::FindAll() {
  ModelTensors tensors;
  Embedding(tensors);
  for (int64_t i = 0; i < spec_.layers; ++i) tensors.layers.push_back(Layer(i));
  if (spec_.final_norm) {
    tensors.final_norm = Norm(spec_.names.final_norm, spec_.hidden_size, spec_.norm_bias);
  }
  if (spec_.predicts) tensors.prediction = Prediction();
  return tensors;
}

TensorFinder::Shapes Resolver::Wanted() {
  FindAll();
  return std::move(tensors_.wanted());
}

namespace {

// A config.json may ask for millions of tensors, whose names would take gigabytes.
void RefuseOtherSize(const DecoderSpec& spec, const WeightSource& source) {
  constexpr int64_t kMaxMissing = 10000;
  const int64_t wanted = CountTensors(spec).tensors;
  const auto found = std::ssize(source.Names());
  if (wanted - found <= kMaxMissing) return;
  const std::string experts =
      spec.mlp.experts > 0 ? fmt::format(" of {} experts", spec.mlp.experts) : "";
  Throw(ErrorKind::kFormat,
        "{} describes a {} model of {} layers{}, which has {} tensors, but the checkpoint has {}",
        spec.described_by, spec.family, spec.layers, experts, wanted, found);
}

}  // namespace

ModelTensors Resolver::Resolve() {
  RefuseOtherSize(spec_, source_);
  ModelTensors tensors = FindAll();
  ReportUnexpected();
  tensors_.problems().ThrowIfAny(
      ErrorKind::kFormat, fmt::format("this checkpoint is not the {} model that its {} describes",
                                      spec_.family, spec_.described_by));
  tensors.int8 = linears_.int8();
  tensors.packed = linears_.packed();
  tensors.slices = std::move(tensors_.slices());
  for (const auto& [name, shape] : tensors_.wanted()) {
    tensors.bytes += static_cast<int64_t>(source_.Find(name)->bytes.size());
  }
  return tensors;
}

void Resolver::ReportUnexpected() {
  std::vector<std::string> harmless = spec_.names.harmless;
  // Some tools save the head although it is the embedding.
  for (const LayerQuantization& quantization : spec_.quantization.Distinct()) {
    if (!quantization.packed) continue;
    const auto unused = UnusedSuffixes(*quantization.packed);
    harmless.insert(harmless.end(), unused.begin(), unused.end());
  }
  if (!spec_.quantization.cache_scheme().empty()) {
    const auto unused = UnusedCacheSuffixes();
    harmless.insert(harmless.end(), unused.begin(), unused.end());
  }
  if (spec_.tied_head) harmless.push_back(tensors_.Name(spec_.names.head + ".weight"));
  for (const std::string& name : source_.Names()) {
    if (tensors_.wanted().contains(name)) continue;
    const bool known = std::ranges::any_of(
                           harmless, [&](const std::string& end) { return name.ends_with(end); }) ||
                       std::ranges::any_of(spec_.names.others, [&](const std::string& begin) {
                         return name.starts_with(begin);
                       });
    if (!known) {
      tensors_.problems().Add("unexpected tensor {}, {}", Quote(name),
                              source_.Find(name)->Describe());
    }
  }
}

namespace {

class NoWeights : public WeightSource {
 public:
  const TensorInfo* Find(std::string_view) const override { return nullptr; }
  const std::vector<std::string>& Names() const override { return names_; }
  const std::map<std::string, std::string, std::less<>>& Metadata() const override {
    return metadata_;
  }
  void Release(const TensorInfo&) const override {}

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace

int64_t LinearTensors::stored_outputs() const {
  int64_t outputs = 0;
  for (const TensorInfo* part : parts) outputs += OutputsOf(*part);
  return outputs;
}

int64_t LinearTensors::outputs() const {
  if (taken_outputs.empty()) return stored_outputs();
  int64_t outputs = 0;
  for (const IndexRange& range : taken_outputs) outputs += range.count();
  return outputs;
}

int64_t LinearTensors::PlaceOf(int64_t output) const {
  for (const IndexRange& range : taken_outputs) {
    if (output < range.count()) return range.begin + output;
    output -= range.count();
  }
  assert(taken_outputs.empty());
  return output;
}

std::vector<WantedTensor> WantedTensors(const DecoderSpec& spec) {
  const NoWeights none;
  std::vector<WantedTensor> tensors;
  for (auto& [name, shape] : Resolver(spec, none).Wanted()) {
    tensors.push_back({.name = name, .shape = std::move(shape)});
  }
  return tensors;
}

TensorTotals CountTensors(const DecoderSpec& spec) {
  const auto count = [](DecoderSpec part) {
    part.quantization = {};
    TensorTotals totals;
    for (const WantedTensor& tensor : WantedTensors(part)) {
      ++totals.tensors;
      int64_t elements = 1;
      for (const int64_t size : tensor.shape) elements *= size;
      totals.elements += elements;
    }
    return totals;
  };
  const TensorTotals none = count(FirstLayers(spec, 0));
  TensorTotals totals = none;
  for (const LayersOfKind& layers : LayersByKind(spec)) {
    const int64_t experts = KindOf(spec, layers.first).mlp.experts;
    const TensorTotals one = count(OneLayer(spec, layers.first, 1));
    const TensorTotals two = experts > 1 ? count(OneLayer(spec, layers.first, 2)) : one;
    for (const auto of : {&TensorTotals::tensors, &TensorTotals::elements}) {
      totals.*of += layers.count * (one.*of - none.*of + (experts - 1) * (two.*of - one.*of));
    }
  }
  return totals;
}

namespace {

void AddLinears(const LayerTensors& layer, std::vector<const LinearTensors*>& all) {
  const LatentTensors& latent = layer.latent;
  for (const LinearTensors* linear :
       {&layer.qkv, &layer.delta.gates, &layer.delta.decay_down, &layer.delta.decay_up,
        &layer.delta.z_down, &layer.delta.z_up, &layer.mamba.in, &latent.query_down, &latent.query,
        &latent.kv_down, &latent.index_query, &latent.index_key, &latent.index_weights}) {
    all.push_back(linear);
  }
  for (const LinearTensors& keys : latent.keys) all.push_back(&keys);
  for (const LinearTensors& values : latent.values) all.push_back(&values);
  for (const LinearTensors* linear :
       {&layer.attention_out, &layer.mamba.out, &layer.mlp.up, &layer.mlp.down, &layer.shared_share,
        &layer.embedding_gate, &layer.embedding_out, &layer.stream_router, &layer.stream_predict,
        &layer.stream_correct, &layer.laurel_down, &layer.laurel_up, &layer.router,
        &layer.experts_in, &layer.experts_out}) {
    all.push_back(linear);
  }
  for (const MlpTensors& expert : layer.experts) {
    for (const LinearTensors* linear : {&expert.up, &expert.down}) all.push_back(linear);
  }
}

}  // namespace

std::vector<const LinearTensors*> LinearsOf(const ModelTensors& tensors) {
  std::vector<const LinearTensors*> all = {&tensors.embedding_blocks, &tensors.project_in,
                                           &tensors.project_out, &tensors.layer_model};
  for (const auto* linears : {&tensors.streams_in, &tensors.streams_out}) {
    for (const LinearTensors& linear : *linears) all.push_back(&linear);
  }
  for (const LayerTensors& layer : tensors.layers) AddLinears(layer, all);
  all.push_back(&tensors.head);
  if (tensors.prediction) {
    all.push_back(&tensors.prediction->join);
    AddLinears(tensors.prediction->layer, all);
  }
  std::erase_if(all, [](const LinearTensors* linear) { return linear->parts.empty(); });
  return all;
}

bool HasPrediction(const DecoderSpec& spec, const WeightSource& source) {
  if (!spec.prediction) return false;
  return std::ranges::any_of(source.Names(), [&](const std::string& name) {
    return name.starts_with(spec.prediction->join + ".");
  });
}

std::string ModuleName(const TensorInfo& weight) {
  return weight.name.substr(0, weight.name.rfind(".weight"));
}

std::string ModuleName(const LinearTensors& linear) { return ModuleName(*linear.parts.front()); }

ModelTensors ResolveTensors(const DecoderSpec& spec, const WeightSource& source) {
  return Resolver(spec, source).Resolve();
}

}  // namespace godwit
