#include <string_view>

#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

float Factor(const HfConfig& config, std::string_view key) {
  return static_cast<float>(config.FloatOr(key, 1, {1e-6, 1e6}));
}

}  // namespace

// Llama with factors on embeddings, scores, residual branches and logits.
DecoderSpec DescribeGranite(const HfConfig& config) {
  DecoderSpec spec = DescribeLlama(config);
  spec.embedding_scale = Factor(config, "embedding_multiplier");
  spec.residual_scale = Factor(config, "residual_multiplier");
  spec.score_scale = Factor(config, "attention_multiplier");
  spec.logit_scale = 1 / Factor(config, "logits_scaling");
  return spec;
}

}  // namespace godwit
