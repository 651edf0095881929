#include "quant/linears.h"

namespace godwit::quant {

std::string ModuleName(const TensorInfo& weight) {
  return weight.name.substr(0, weight.name.rfind(".weight"));
}

std::string ModuleName(const LinearTensors& linear) { return ModuleName(*linear.parts.front()); }

void ForEachLinear(const LayerTensors& layer,
                   const std::function<void(const LinearTensors& linear)>& visit) {
  visit(layer.qkv);
  visit(layer.attention_out);
  if (layer.experts.empty()) {
    visit(layer.mlp.up);
    visit(layer.mlp.down);
  }
  for (const MlpTensors& expert : layer.experts) {
    visit(expert.up);
    visit(expert.down);
  }
}

}  // namespace godwit::quant
