#include "quant/quant_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/error.h"
#include "base/quote.h"
#include "quant/linear_layers.h"

namespace godwit::quant {
namespace {

// Patterns of layers with another treatment, and which patterns matched.
class LayerPatterns {
 public:
  // treatment: for messages, such as "stay in float"
  LayerPatterns(const std::vector<std::string>& patterns, std::string_view treatment)
      : treatment_(treatment) {
    for (const std::string& pattern : patterns) used_.emplace(pattern, false);
  }

  bool Match(const LinearTensors& linear) {
    const std::string* matched = nullptr;
    const std::string* other = nullptr;
    std::vector<std::string> names;
    for (const MatrixPart& part : PartsOf(linear)) names.push_back(ModuleName(part));
    for (const std::string& name : names) (Matches(name) ? matched : other) = &name;
    if (matched != nullptr && other != nullptr) {
      Throw(ErrorKind::kInput,
            "{} would {} but not {}, and the two are computed together: name both or neither",
            *matched, treatment_, *other);
    }
    return matched != nullptr;
  }

  void RefuseUnused() const {
    for (const auto& [pattern, used] : used_) {
      if (!used) {
        Throw(ErrorKind::kInput, "no quantized linear layer is called {}, so none can {}",
              Quote(pattern), treatment_);
      }
    }
  }

 private:
  bool Matches(const std::string& name) {
    bool any = false;
    for (auto& [pattern, used] : used_) {
      if (MatchesName(pattern, name)) used = any = true;
    }
    return any;
  }

  const std::string_view treatment_;
  std::map<std::string, bool> used_;  // pattern -> whether it matched
};

void Ignore(const LinearTensors& linear, QuantPlan& plan) {
  for (const MatrixPart& part : PartsOf(linear)) plan.ignore.push_back(ModuleName(part));
}

// The modules that make keys and values of latent vectors.
std::vector<std::string> KeysAndValues(const LatentTensors& latent) {
  const TensorInfo& first = *latent.keys.front().parts.front();
  if (!first.whole.empty()) return {ModuleName(TensorInfo{.name = first.whole})};
  std::vector<std::string> modules;
  for (const auto* heads : {&latent.keys, &latent.values}) {
    for (const LinearTensors& head : *heads) modules.push_back(ModuleName(head));
  }
  return modules;
}

}  // namespace

QuantPlan PlanQuantization(const DecoderSpec& spec, const ModelTensors& tensors, SmoothKind smooth,
                           const std::vector<std::string>& keep,
                           const std::vector<std::string>& int8) {
  if (spec.transposed) {
    Throw(ErrorKind::kUnsupported,
          "a {} checkpoint stores its matrices as [inputs, outputs], which formats of int8 "
          "checkpoints do not support: quantize it while loading, with --weights int8",
          spec.family);
  }
  QuantPlan plan;
  LayerPatterns kept(keep, "stay in float"), of_8_bits(int8, "have 8 bits");
  Ignore(tensors.project_in, plan);
  Ignore(tensors.project_out, plan);
  Ignore(tensors.layer_model, plan);
  for (const auto* streams : {&tensors.streams_in, &tensors.streams_out}) {
    for (const LinearTensors& linear : *streams) Ignore(linear, plan);
  }
  for (const LayerTensors& layer : tensors.layers) {
    for (const LinearTensors* gates :
         {&layer.router, &layer.shared_share, &layer.delta.gates, &layer.delta.decay_down,
          &layer.delta.decay_up, &layer.latent.index_weights, &layer.embedding_gate,
          &layer.embedding_out, &layer.stream_router, &layer.stream_predict, &layer.stream_correct,
          &layer.laurel_down, &layer.laurel_up, &layer.experts_in, &layer.experts_out}) {
      Ignore(*gates, plan);
    }
    if (!layer.latent.keys.empty())
      std::ranges::copy(KeysAndValues(layer.latent), std::back_inserter(plan.ignore));
    ForEachLinear(layer, [&](const LinearTensors& linear) {
      if (kept.Match(linear)) return Ignore(linear, plan);
      plan.linears.push_back(&linear);
      if (of_8_bits.Match(linear)) plan.int8.insert(&linear);
    });
  }
  // A tied head counts, too: readers have a module for it.
  plan.ignore.push_back(spec.tied_head ? spec.names.head : ModuleName(tensors.head));
  kept.RefuseUnused();
  of_8_bits.RefuseUnused();
  plan.unstacked = UnstackedTensors(tensors);

  plan.smooth = FindSmoothGroups(spec, tensors, smooth);
  const std::set<const LinearTensors*> quantized(plan.linears.begin(), plan.linears.end());
  std::erase_if(plan.smooth.groups, [&](const SmoothGroup& group) {
    const bool useful = std::ranges::any_of(
        group.linears, [&](const LinearTensors* linear) { return quantized.contains(linear); });
    if (!useful) plan.smooth.left_out.push_back({group.name, "the layers after it stay in float"});
    return !useful;
  });
  return plan;
}

}  // namespace godwit::quant
