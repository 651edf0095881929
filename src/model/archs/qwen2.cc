#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with biases on q, k and v only, and a sliding window in the upper layers if switched on.
DecoderSpec DescribeQwen2(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  spec.qkv_bias = true;
  ReadSwitchedWindows(config, spec);
  return spec;
}

namespace {

// Qwen2's config.json has no field for biases: there are always some.
void CompleteQwen2(const GgufMetadata& metadata, const GgufShape& shape,
                   nlohmann::json& /*config*/) {
  RequireWholeRotation(metadata, shape);
}

}  // namespace

const GgufFamily kQwen2Gguf = {.architecture = "qwen2",
                               .model_type = "qwen2",
                               .layers = kQwenGgufLayers,
                               .complete = CompleteQwen2};

}  // namespace godwit
