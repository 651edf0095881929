#include "quant/quantization_block.h"

#include "base/error.h"
#include "weights/quantization_config.h"

namespace godwit::quant {
namespace {

using nlohmann::ordered_json;

ordered_json Arguments(const char* strategy, bool dynamic, const Grouping& grouping = {}) {
  const int64_t group = grouping.size;
  return {{"num_bits", group > 0 ? 4 : 8},
          {"type", "int"},
          {"symmetric", !grouping.zeros},
          {"strategy", strategy},
          {"dynamic", dynamic},
          {"group_size", group > 0 ? ordered_json(group) : ordered_json()},
          {"block_structure", nullptr},
          {"actorder", nullptr},
          {"observer", dynamic ? ordered_json() : ordered_json("minmax")},
          {"observer_kwargs", ordered_json::object()}};
}

ordered_json BitsandbytesBlock(float threshold, const std::vector<std::string>& ignore) {
  return {{"_load_in_4bit", false},
          {"_load_in_8bit", true},
          {"bnb_4bit_compute_dtype", "float32"},
          {"bnb_4bit_quant_storage", "uint8"},
          {"bnb_4bit_quant_type", "fp4"},
          {"bnb_4bit_use_double_quant", false},
          {"llm_int8_enable_fp32_cpu_offload", false},
          {"llm_int8_has_fp16_weight", false},
          {"llm_int8_skip_modules", ignore},
          {"llm_int8_threshold", threshold},
          {"load_in_4bit", false},
          {"load_in_8bit", true},
          {"quant_method", "bitsandbytes"}};
}

// targets: modules, or a class of them. Readers look for names first.
ordered_json ConfigGroup(const Scheme& scheme, const std::vector<std::string>& targets) {
  const bool each_token = scheme.input == InputScale::kPerToken;
  // Groups of outputs are written as channels whose scales repeat, which every reader supports.
  const bool each_tensor = scheme.outputs_per_scale == kAllOutputs;
  const char* strategy = scheme.has_groups() ? "group" : each_tensor ? "tensor" : "channel";
  ordered_json group = {{"targets", targets},
                        {"weights", Arguments(strategy, /*dynamic=*/false, scheme.grouping())},
                        {"input_activations", Arguments(each_token ? "token" : "tensor",
                                                        scheme.input != InputScale::kStatic)},
                        {"output_activations", nullptr}};
  if (scheme.weights_alone) group["input_activations"] = nullptr;
  return group;
}

}  // namespace

ordered_json QuantizationBlock(const Scheme& scheme, const std::vector<std::string>& ignore,
                               const std::vector<std::string>& int8) {
  if (scheme.is_bitsandbytes()) return BitsandbytesBlock(scheme.outlier_threshold, ignore);
  ordered_json groups = {{"group_0", ConfigGroup(scheme, {"Linear"})}};
  if (!int8.empty()) groups["group_1"] = ConfigGroup(Int8Counterpart(scheme), int8);
  return {{"config_groups", groups},
          {"format", scheme.weights_alone ? "pack-quantized" : "int-quantized"},
          {"ignore", ignore},
          {"kv_cache_scheme", nullptr},
          {"quant_method", "compressed-tensors"},
          {"quantization_status", "compressed"},
          {"global_compression_ratio", nullptr}};
}

void RefuseQuantized(const HfConfig& config, const std::string& folder) {
  const auto key = QuantizationKey(config);
  if (!key) return;
  Throw(ErrorKind::kUnsupported,
        "{}: the model is quantized already (its config.json has a {}), expected a float model",
        folder, *key);
}

}  // namespace godwit::quant
