#include <nlohmann/json.hpp>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with RMSNorm on every query and key head, and heads of a separately stated width.
DecoderSpec DescribeQwen3(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.qk_norm = QkNorm::kHeads;
  ReadSwitchedWindows(config, spec);
  return spec;
}

void CompleteQwen3(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["attention_bias"] = shape.qkv_bias;
}

const GgufFamily kQwen3Gguf = {.architecture = "qwen3",
                               .model_type = "qwen3",
                               .layers = kQwenGgufLayers,
                               .complete = CompleteQwen3};

}  // namespace godwit
