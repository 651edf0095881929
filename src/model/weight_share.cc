#include "model/weight_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace godwit {
namespace {

// Kernels compute so many outputs together.
constexpr int64_t kUnit = 64;

// Part `part` of n things, in whole units. The last unit may be smaller.
IndexRange Cut(int64_t n, int64_t unit, int64_t part, int64_t parts) {
  const int64_t units = (n + unit - 1) / unit;
  return {std::min(n, units * part / parts * unit), std::min(n, units * (part + 1) / parts * unit)};
}

IndexRange Shifted(const IndexRange& range, int64_t by) {
  return {range.begin + by, range.end + by};
}

IndexRange Times(const IndexRange& range, int64_t factor) {
  return {range.begin * factor, range.end * factor};
}

// A kind of matrix whose inputs are cut, over all layers.
struct Columns {
  int64_t unit = 1;  // inputs of a block or group
  std::string name;  // the module of the largest unit
};

void Join(const LinearTensors& linear, Columns& columns) {
  if (linear.parts.empty()) return;
  for (size_t i = 0; i < linear.parts.size(); ++i) {
    int64_t unit = 1;
    if (const BlockFormat* blocks = linear.parts[i]->blocks; blocks != nullptr) {
      unit = blocks->elements;
    } else if (!linear.packed.empty()) {
      if (!linear.packed[i]->order.empty()) {
        Throw(
            ErrorKind::kUnsupported,
            "ranks cannot share the weights: the inputs of {} are packed in an order of their own "
            "(act order): let one rank have them",
            ModuleName(linear));
      }
      unit = std::max<int64_t>(1, linear.packed[i]->format.group);
    }
    if (columns.unit % unit != 0) {
      columns.unit = std::lcm(columns.unit, unit);
      columns.name = ModuleName(linear);
    }
  }
}

std::string Stored(const Columns& columns) {
  if (columns.name.empty()) return "";
  return fmt::format(", cut between blocks of {} numbers in {}", columns.unit, columns.name);
}

class Cutter {
 public:
  Cutter(const DecoderSpec& whole, ModelTensors tensors, int part, int parts)
      : whole_(whole), part_(part), parts_(parts) {
    share_.spec = whole;
    share_.tensors = std::move(tensors);
  }

  WeightShare CutAll() {
    RefuseUnequalLayers();
    RefuseNormOverHeads();
    CutHeads();
    CutMixers();
    CutMlps();
    CutVocabulary();
    return std::move(share_);
  }

 private:
  [[noreturn]] void Refuse(int64_t n, std::string_view what, const std::string& why) const {
    Throw(ErrorKind::kUnsupported,
          "{} ranks cannot share the weights: the {} model has {} {}{}: let fewer ranks share them",
          parts_, whole_.family, n, what, why);
  }

  void RefuseNormOverHeads() const {
    if (whole_.qk_norm != QkNorm::kAllHeads) return;
    Throw(ErrorKind::kUnsupported,
          "ranks cannot share the weights of the {} model, which normalises the queries of all "
          "heads together: let one rank have them",
          whole_.family);
  }

  void RefuseUnequalLayers() const {
    if (!HasUnequalKeys(whole_) && !whole_.layer_embedding && !whole_.branch_norms) return;
    Throw(ErrorKind::kUnsupported,
          "ranks cannot share the weights of the {} model, whose layers have different heads, read "
          "keys of other layers, or have embeddings or branches of their own: let one rank have "
          "them",
          whole_.family);
  }

  bool HasAttention(int64_t layer) const { return godwit::HasAttention(KindOf(whole_, layer)); }

  void TakeColumns(const IndexRange& inputs, LinearTensors& linear) const {
    if (linear.parts.empty()) return;
    linear.taken_inputs = inputs;
    linear.takes_biases = part_ == 0;  // the ranks' results add up
  }

  // The query heads of this part, and the KV heads that they see.
  std::pair<IndexRange, IndexRange> Heads(const Columns& columns, int64_t width) const {
    const int64_t heads = whole_.heads, kv_heads = whole_.kv_heads, group = heads / kv_heads;
    const int64_t unit = std::lcm(columns.unit, width) / width;  // heads between two cuts
    const auto refuse = [&] {
      const std::string keys =
          whole_.latent ? "" : fmt::format(" for {} KV head{}", kv_heads, kv_heads == 1 ? "" : "s");
      Refuse(heads, "query heads" + keys, Stored(columns));
    };
    if (whole_.latent) {
      if (heads / unit < parts_) refuse();
      return {Cut(heads, unit, part_, parts_), {0, 1}};
    }
    if (parts_ <= kv_heads) {
      const int64_t kv_unit = std::lcm(unit, group) / group;
      if (kv_heads / kv_unit < parts_) refuse();
      const IndexRange kv = Cut(kv_heads, kv_unit, part_, parts_);
      return {Times(kv, group), kv};
    }
    // Several parts have heads that see the same keys, and each stores them.
    const int64_t sharers = parts_ / kv_heads, kv_head = part_ / sharers;
    if (parts_ % kv_heads != 0 || group % unit != 0 || group / unit < sharers) refuse();
    return {Shifted(Cut(group, unit, part_ % sharers, sharers), kv_head * group),
            {kv_head, kv_head + 1}};
  }

  void CutHeads() {
    Columns columns;
    int64_t layers = 0;
    for (int64_t i = 0; i < whole_.layers; ++i) {
      if (!HasAttention(i)) continue;
      ++layers;
      Join(share_.tensors.layers[i].attention_out, columns);
    }
    if (layers == 0) return;
    const int64_t dim = whole_.head_dim;
    const int64_t width = whole_.latent ? whole_.latent->value_dim : dim;
    const auto [heads, kv_heads] = Heads(columns, width);
    for (int64_t i = 0; i < whole_.layers; ++i) {
      if (!HasAttention(i)) continue;
      LayerTensors& layer = share_.tensors.layers[i];
      if (whole_.latent) {
        CutLatent(heads, layer.latent);
      } else {
        const int64_t keys = whole_.heads * dim, values = keys + whole_.kv_heads * dim;
        layer.qkv.taken_outputs = {Times(heads, dim), Shifted(Times(kv_heads, dim), keys),
                                   Shifted(Times(kv_heads, dim), values)};
        if (whole_.gated_attention) {
          const int64_t gates = values + whole_.kv_heads * dim;
          layer.qkv.taken_outputs.push_back(Shifted(Times(heads, dim), gates));
        }
      }
      CutNorm(heads, layer.q_norm);
      CutNorm(kv_heads, layer.k_norm);
      layer.taken_heads = heads;
      TakeColumns(Times(heads, width), layer.attention_out);
    }
    DecoderSpec& spec = share_.spec;
    spec.heads = heads.count();
    spec.kv_heads = kv_heads.count();
    for (LayerKind& kind : spec.other_kinds) kind.kv_heads = kv_heads.count();
    if (!spec.alibi.slopes.empty()) {
      const auto slopes = whole_.alibi.slopes.begin();
      spec.alibi.slopes.assign(slopes + heads.begin, slopes + heads.end);
    }
  }

  // The keys and values of latent vectors are matrices of their heads. The vectors are on all
  // ranks.
  void CutLatent(const IndexRange& heads, LatentTensors& latent) const {
    latent.query.taken_outputs = {Times(heads, whole_.latent->query_dim())};
    for (std::vector<LinearTensors>* of_heads : {&latent.keys, &latent.values}) {
      of_heads->erase(of_heads->begin() + heads.end, of_heads->end());
      of_heads->erase(of_heads->begin(), of_heads->begin() + heads.begin);
    }
  }

  void CutNorm(const IndexRange& heads, NormTensors& norm) const {
    if (whole_.qk_norm == QkNorm::kEachHead) norm.taken = Times(heads, whole_.head_dim);
  }

  // Channels of a recurrent layer do not meet inside it.
  void CutMixers() {
    ForEachKind([&](LayerKind& kind, const std::vector<LayerTensors*>& layers) {
      if (!IsRecurrent(kind)) return;
      if (kind.mixer == Mixer::kMamba2) return CutMambas(kind.mamba, layers);
      if (kind.mixer == Mixer::kGatedDeltaNet) return CutDeltaNets(kind.delta, layers);
      const bool convolution = kind.mixer == Mixer::kShortConvolution;
      int64_t& width = convolution ? kind.convolution.width : kind.sum.width;
      Columns columns;
      for (const LayerTensors* layer : layers) Join(layer->attention_out, columns);
      const IndexRange taken = CutColumns(width, columns, "channels in recurrent layers");
      for (LayerTensors* layer : layers) {
        layer->qkv.taken_outputs = {taken};
        if (convolution) {
          for (const int64_t first : {width, 2 * width}) {  // two gates and the input
            layer->qkv.taken_outputs.push_back({taken.begin + first, taken.end + first});
          }
          layer->taken_channels = {taken};
        }
        TakeColumns(taken, layer->attention_out);
      }
      width = taken.count();
    });
  }

  // Key heads do not meet, nor do the value heads of each.
  void CutDeltaNets(GatedDeltaNetSpec& delta, const std::vector<LayerTensors*>& layers) const {
    ops::DeltaNetShape& shape = delta.shape;
    if (shape.in_turn) {
      Throw(ErrorKind::kUnsupported,
            "value heads of this file take key heads in turn, so several processes cannot share "
            "its weights: take the model's folder with *.safetensors");
    }
    const int64_t group = shape.value_heads / shape.key_heads, width = group * shape.value_dim;
    Columns columns;
    for (const LayerTensors* layer : layers) Join(layer->attention_out, columns);
    const int64_t unit = std::lcm(columns.unit, width) / width;  // heads between two cuts
    if (shape.key_heads / unit < parts_) {
      Refuse(shape.key_heads, "key heads in recurrent layers", Stored(columns));
    }
    const IndexRange heads = Cut(shape.key_heads, unit, part_, parts_);
    const IndexRange keys = Times(heads, shape.key_dim), values = Times(heads, width);
    const IndexRange value_heads = Times(heads, group);
    const IndexRange decays = shape.channel_decays ? keys : value_heads;
    for (LayerTensors* layer : layers) {
      layer->taken_channels = {keys, Shifted(keys, shape.keys()),
                               Shifted(values, 2 * shape.keys())};
      layer->qkv.taken_outputs = layer->taken_channels;
      layer->delta.gates.taken_outputs = {value_heads};
      if (delta.narrow > 0) {  // all ranks have the vectors between the narrow matrices
        layer->delta.decay_up.taken_outputs = {decays};
        layer->delta.z_up.taken_outputs = {values};
      } else {
        layer->delta.gates.taken_outputs.push_back(Shifted(decays, shape.value_heads));
        layer->qkv.taken_outputs.push_back(Shifted(values, shape.convolved()));
      }
      layer->delta.taken_heads = value_heads;
      layer->delta.taken_biases = decays;
      TakeColumns(values, layer->attention_out);
    }
    shape.key_heads = heads.count();
    shape.value_heads = value_heads.count();
  }

  // Groups do not meet. Where there is one, heads do not meet, and all ranks have its B and C.
  void CutMambas(Mamba2Spec& mamba, const std::vector<LayerTensors*>& layers) const {
    ops::MatrixStateShape& shape = mamba.shape;
    const bool whole = shape.key_heads == 1;
    if (whole && mamba.norm != Mamba2Norm::kNone) {
      Throw(ErrorKind::kUnsupported,
            "ranks cannot share the weights of the {} model, which normalises the results of all "
            "heads of a recurrent layer together: let one rank have them",
            whole_.family);
    }
    const int64_t count = whole ? shape.value_heads : shape.key_heads;
    const int64_t group = whole ? 1 : shape.group(), width = group * shape.value_dim;
    Columns columns;
    for (const LayerTensors* layer : layers) Join(layer->mamba.out, columns);
    const int64_t unit = std::lcm(columns.unit, width) / width;  // between two cuts
    if (count / unit < parts_) {
      Refuse(count, whole ? "heads in recurrent layers" : "groups in recurrent layers",
             Stored(columns));
    }
    const IndexRange taken = Cut(count, unit, part_, parts_);
    const IndexRange heads = Times(taken, group), values = Times(taken, width);
    const IndexRange keys = whole ? IndexRange{0, shape.key_dim} : Times(taken, shape.key_dim);
    for (LayerTensors* layer : layers) {
      layer->taken_channels = {values, Shifted(keys, shape.values()),
                               Shifted(keys, shape.values() + shape.keys())};
      std::vector<IndexRange>& outputs = layer->mamba.in.taken_outputs;
      outputs = {values};
      for (const IndexRange& channels : layer->taken_channels) {
        outputs.push_back(Shifted(channels, shape.values()));
      }
      outputs.push_back(Shifted(heads, shape.values() + shape.convolved()));
      layer->mamba.taken_heads = heads;
      TakeColumns(values, layer->mamba.out);
    }
    if (!whole) shape.key_heads = taken.count();
    shape.value_heads = heads.count();
  }

  void CutMlps() {
    ForEachKind([&](LayerKind& kind, const std::vector<LayerTensors*>& layers) {
      if (!HasMlp(kind)) return;
      if (kind.mlp.experts > 0) {
        CutExperts(kind.mlp.experts, layers);
        if (kind.shared_mlp.intermediate > 0) CutMlp(layers, kind.shared_mlp);
      } else {
        CutMlp(layers, kind.mlp);
      }
    });
  }

  void CutExperts(int64_t experts, const std::vector<LayerTensors*>& layers) const {
    if (experts < parts_) Refuse(experts, "experts in a layer", "");
    const IndexRange taken = Cut(experts, 1, part_, parts_);
    for (LayerTensors* layer : layers) {
      layer->experts.erase(layer->experts.begin() + taken.end, layer->experts.end());
      layer->experts.erase(layer->experts.begin(), layer->experts.begin() + taken.begin);
      layer->first_expert = taken.begin;
    }
  }

  void CutMlp(const std::vector<LayerTensors*>& layers, MlpSpec& mlp) const {
    Columns columns;
    for (const LayerTensors* layer : layers) Join(layer->mlp.down, columns);
    const int64_t width = mlp.intermediate;
    const IndexRange taken = CutColumns(width, columns, "columns in an MLP");
    for (LayerTensors* layer : layers) {
      layer->mlp.up.taken_outputs = {taken};
      if (mlp.gated) layer->mlp.up.taken_outputs.push_back(Shifted(taken, width));
      TakeColumns(taken, layer->mlp.down);
    }
    mlp.intermediate = taken.count();
  }

  IndexRange CutColumns(int64_t width, const Columns& columns, std::string_view what) const {
    const int64_t wide = std::lcm(columns.unit, kUnit);
    const int64_t unit = width / wide >= parts_ ? wide : columns.unit;
    if (width / unit < parts_) Refuse(width, what, Stored(columns));
    return Cut(width, unit, part_, parts_);
  }

  void CutVocabulary() {
    ModelTensors& tensors = share_.tensors;
    const IndexRange tokens = TokensOf(whole_.vocab_size, part_, parts_);
    if (tokens.count() == 0) Refuse(whole_.vocab_size, "tokens in its vocabulary", "");
    tensors.taken_tokens = tokens;
    tensors.head.taken_outputs = {tokens};
    if (!tensors.embedding_blocks.parts.empty()) tensors.embedding_blocks.taken_outputs = {tokens};
  }

  // Calls visit(kind, its layers).
  template <typename Visit>
  void ForEachKind(const Visit& visit) {
    DecoderSpec& spec = share_.spec;
    std::vector<LayerKind*> kinds = {&spec};
    for (LayerKind& kind : spec.other_kinds) kinds.push_back(&kind);
    std::vector<std::vector<LayerTensors*>> layers(kinds.size());
    for (int64_t i = 0; i < spec.layers; ++i) {
      const size_t kind = spec.layer_kind.empty() ? 0 : static_cast<size_t>(spec.layer_kind[i]);
      layers[kind].push_back(&share_.tensors.layers[i]);
    }
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (!layers[i].empty()) visit(*kinds[i], layers[i]);
    }
  }

  const DecoderSpec& whole_;
  int part_, parts_;
  WeightShare share_;
};

}  // namespace

WeightShare TakeShare(const DecoderSpec& spec, ModelTensors tensors, int part, int parts) {
  if (parts == 1) return {.spec = spec, .tensors = std::move(tensors)};
  return Cutter(spec, std::move(tensors), part, parts).CutAll();
}

WeightShare TakeShare(const DecoderSpec& spec, ModelTensors tensors,
                      const std::shared_ptr<Communicator>& ranks) {
  if (ranks == nullptr) return TakeShare(spec, std::move(tensors), 0, 1);
  return TakeShare(spec, std::move(tensors), ranks->rank(), ranks->size());
}

IndexRange TokensOf(int64_t vocab_size, int part, int parts) {
  return Cut(vocab_size, vocab_size / kUnit >= parts ? kUnit : 1, part, parts);
}

}  // namespace godwit
