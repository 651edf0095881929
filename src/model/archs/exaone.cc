#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// Every so many layers have no window. The first config.json files spell it in letters.
int64_t ReadPeriod(const HfConfig& config) {
  constexpr std::string_view kKey = "sliding_window_pattern";
  constexpr int64_t kUsual = 4;
  config.MarkAsRead(kKey);
  if (config.Has("layer_types") || config.IsAmong(kKey, R"(["LLLG"])")) return kUsual;
  return config.IntOr(kKey, kUsual, kLayerRange);
}

}  // namespace

// Llama with norms of query and key heads. Norms stand behind blocks, not before them. In a model
// with windows, the layers without one have no positions.
DecoderSpec DescribeExaone4(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaLike(config);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.input_norms = false;
  spec.output_norms = true;
  spec.qk_norm = QkNorm::kHeads;
  spec.names.attention_out_norm = "model.layers.{}.post_attention_layernorm";
  spec.names.mlp_out_norm = "model.layers.{}.post_feedforward_layernorm";
  const int64_t period = ReadPeriod(config);
  ReadAlternatingWindows(config, period, spec);
  const std::vector<bool> whole = LayersWithoutWindow(spec);
  if (std::ranges::count(whole, true) == spec.layers) return spec;
  ChangeLayers(spec, whole, [](LayerKind& kind) { kind.rotary = {}; });
  return spec;
}

namespace {

void CompleteExaone4(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  if (!config.contains("sliding_window")) config["sliding_window"] = nullptr;
  ReadWindowPattern(metadata, config);
}

}  // namespace

const GgufFamily kExaone4Gguf = {.architecture = "exaone4",
                                 .model_type = "exaone4",
                                 .layers = kPostNormGgufLayers,
                                 .complete = CompleteExaone4};

}  // namespace godwit
