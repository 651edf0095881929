#include "quant/quant_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/quote.h"
#include "quant/linear_layers.h"

namespace godwit::quant {
namespace {

// Remembers which patterns were of use.
class KeepPatterns {
 public:
  explicit KeepPatterns(const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) used_.emplace(pattern, false);
  }

  bool Keeps(const LinearTensors& linear) {
    const std::string* kept = nullptr;
    const std::string* other = nullptr;
    std::vector<std::string> names;
    for (const MatrixPart& part : PartsOf(linear)) names.push_back(ModuleName(part));
    for (const std::string& name : names) (Matches(name) ? kept : other) = &name;
    if (kept != nullptr && other != nullptr) {
      Throw(ErrorKind::kInput,
            "{} is to stay in float but not {}, and the two are computed as one: both or none",
            *kept, *other);
    }
    return kept != nullptr;
  }

  void RefuseUnused() const {
    for (const auto& [pattern, used] : used_) {
      if (!used) {
        Throw(ErrorKind::kInput,
              "no linear layer that would be quantized is called {}: none can stay in float",
              Quote(pattern));
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

  std::map<std::string, bool> used_;  // pattern -> whether it matched
};

void Ignore(const LinearTensors& linear, QuantPlan& plan) {
  for (const MatrixPart& part : PartsOf(linear)) plan.ignore.push_back(ModuleName(part));
}

// The module of which all heads' are slices.
std::string KeysAndValues(const LatentTensors& latent) {
  return ModuleName(TensorInfo{.name = latent.keys.front().parts.front()->whole});
}

}  // namespace

QuantPlan PlanQuantization(const DecoderSpec& spec, const ModelTensors& tensors, SmoothKind smooth,
                           const std::vector<std::string>& keep) {
  if (spec.transposed) {
    Throw(
        ErrorKind::kUnsupported,
        "a {} checkpoint stores its matrices as [inputs, outputs], and formats of int8 checkpoints "
        "are for [outputs, inputs]: it can be quantized while loading",
        spec.family);
  }
  QuantPlan plan;
  KeepPatterns patterns(keep);
  Ignore(tensors.project_in, plan);
  Ignore(tensors.project_out, plan);
  for (const LayerTensors& layer : tensors.layers) {
    Ignore(layer.router, plan);
    if (spec.latent) plan.ignore.push_back(KeysAndValues(layer.latent));
    ForEachLinear(layer, [&](const LinearTensors& linear) {
      if (patterns.Keeps(linear)) {
        Ignore(linear, plan);
      } else {
        plan.linears.push_back(&linear);
      }
    });
  }
  // A tied one, too: readers have a module for it.
  plan.ignore.push_back(spec.tied_head ? spec.names.head : ModuleName(tensors.head));
  patterns.RefuseUnused();
  plan.unstacked = UnstackedTensors(tensors);

  plan.smooth = FindSmoothGroups(spec, tensors, smooth);
  const std::set<const LinearTensors*> quantized(plan.linears.begin(), plan.linears.end());
  std::erase_if(plan.smooth.groups, [&](const SmoothGroup& group) {
    const bool useful = std::ranges::any_of(
        group.linears, [&](const LinearTensors* linear) { return quantized.contains(linear); });
    if (!useful) plan.smooth.left_out.push_back({group.name, "what reads it stays in float"});
    return !useful;
  });
  return plan;
}

}  // namespace godwit::quant
