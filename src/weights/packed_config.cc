#include "weights/packed_config.h"

#include "weights/quantization_fields.h"

namespace godwit {
namespace {

using Layout = PackedFormat::Layout;

// Scales are repeated for groups of the kernels, the smallest of which has so many inputs.
constexpr int64_t kLeastGroup = 16;
constexpr IntRange kGroupSizes = {-1, 1 << 30};

int ReadBits(const HfConfig& config, std::string_view key) {
  const int64_t bits = config.Int(key, {1, 64});
  if (bits != 4 && bits != 8) config.Refuse(key, "4 or 8", ErrorKind::kUnsupported);
  return static_cast<int>(bits);
}

// 0: all inputs.
int64_t ReadGroup(const HfConfig& config, std::string_view key) {
  const int64_t group = config.Int(key, kGroupSizes);
  if (group == -1) return 0;
  if (group == 0 || group % kLeastGroup != 0) {
    config.Refuse(key, "-1 or a multiple of 16", ErrorKind::kUnsupported);
  }
  return group;
}

// Of compressed-tensors: a name, or whether there is an order at all. "weight" orders inputs while
// it quantizes and leaves no trace in the groups.
bool ReadActOrder(const HfConfig& weights) {
  constexpr std::string_view kKey = "actorder";
  if (!weights.Has(kKey)) return false;
  if (weights.IsAmong(kKey, "[true,false]")) return weights.BoolOr(kKey, false);
  const std::string order = weights.String(kKey);
  ExpectOneOf(weights, kKey, order, {"group", "dynamic", "weight", "static"});
  return order == "group" || order == "dynamic";
}

}  // namespace

PackedFormat ReadPackQuantized(const HfConfig& weights) {
  ExpectOneOf(weights, "type", weights.StringOr("type", "int"), {"int"});
  ExpectBool(weights, "dynamic", false, /*fallback=*/false);
  const std::string strategy = StrategyOf(weights);
  ExpectOneOf(weights, "strategy", strategy, {"group", "channel"});
  return {.layout = Layout::kPackQuantized,
          .bits = weights.Has("num_bits") ? ReadBits(weights, "num_bits") : 8,
          .group = strategy == "group" ? ReadGroup(weights, "group_size") : 0,
          .zeros = !weights.BoolOr("symmetric", true),
          .act_order = ReadActOrder(weights)};
}

PackedFormat ReadGptq(const HfConfig& config) {
  const std::string version = config.StringOr("checkpoint_format", "gptq");
  ExpectOneOf(config, "checkpoint_format", version, {"gptq", "gptq_v2"});
  ExpectBool(config, "is_marlin_format", false, /*fallback=*/false);
  ExpectOneOf(config, "pack_dtype", config.StringOr("pack_dtype", "int32"), {"int32"});
  if (const auto dynamic = config.Object("dynamic")) {
    for (const std::string& rule : dynamic->Keys()) {
      // Layers that are left alone are seen to be.
      if (rule.starts_with("-:")) continue;
      config.Refuse("dynamic", "no bits and groups of single layers", ErrorKind::kUnsupported);
    }
  }
  return {.layout = Layout::kGptq,
          .bits = ReadBits(config, "bits"),
          .group = ReadGroup(config, "group_size"),
          .zeros = !config.BoolOr("sym", true),
          .zeros_less_1 = version == "gptq",
          .act_order = config.BoolOr("desc_act", false)};
}

PackedFormat ReadAwq(const HfConfig& config) {
  ExpectOneOf(config, "version", config.StringOr("version", "gemm"), {"gemm"});
  ExpectBool(config, "zero_point", true, /*fallback=*/true);
  if (config.Int("bits", {1, 64}) != 4) config.Refuse("bits", "4", ErrorKind::kUnsupported);
  return {.layout = Layout::kAwq, .group = ReadGroup(config, "group_size"), .zeros = true};
}

}  // namespace godwit
