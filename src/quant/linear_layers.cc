#include "quant/linear_layers.h"

#include <fnmatch.h>

#include <span>
#include <vector>

#include "quant/matrix_part.h"

namespace godwit::quant {

void ForEachLinear(const LayerTensors& layer,
                   const std::function<void(const LinearTensors& linear)>& visit) {
  const LatentTensors& latent = layer.latent;
  for (const LinearTensors* linear :
       {&layer.qkv, &latent.query_down, &latent.query, &latent.kv_down, &latent.index_query,
        &latent.index_key, &layer.attention_out, &layer.delta.z_down, &layer.delta.z_up,
        &layer.mamba.in, &layer.mamba.out}) {
    if (!linear->parts.empty()) visit(*linear);
  }
  if (!layer.mlp.up.parts.empty()) {
    visit(layer.mlp.up);
    visit(layer.mlp.down);
  }
  for (const MlpTensors& expert : layer.experts) {
    visit(expert.up);
    visit(expert.down);
  }
}

bool MatchesName(const std::string& pattern, const std::string& module) {
  return fnmatch(pattern.c_str(), module.c_str(), 0) == 0;
}

std::string LastName(const std::string& module) { return module.substr(module.rfind('.') + 1); }

std::string FullName(const LinearTensors& linear) {
  const std::vector<MatrixPart> parts = PartsOf(linear);
  std::string name = ModuleName(parts.front());
  for (const MatrixPart& part : std::span(parts).subspan(1)) {
    name += ", " + LastName(ModuleName(part));
  }
  return name;
}

}  // namespace godwit::quant
