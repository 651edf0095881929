#include "quant/linears.h"

namespace godwit::quant {

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
