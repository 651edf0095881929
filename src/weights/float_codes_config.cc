#include "weights/float_codes_config.h"

#include <fmt/format.h>

#include "weights/packed_config.h"

namespace godwit {
namespace {

using Layout = PackedFormat::Layout;
using ScaleType = PackedFormat::ScaleType;

constexpr IntRange kBlockSizes = {1, 1 << 20};
constexpr IntRange kFloatGroups = {-1, 1 << 30};
constexpr int64_t kNvfp4Group = 16;
constexpr int64_t kMxGroup = 32;  // OCP Microscaling Formats 1.0, table 1
constexpr std::string_view kScaleSuffix = ".weight_scale";
constexpr std::string_view kInverseSuffix = ".weight_scale_inv";

constexpr PackedFormat kFp8 = {.layout = Layout::kFloats8,
                               .bits = 8,
                               .codes_suffix = ".weight",
                               .scales_suffix = kScaleSuffix};

void ExpectInt(const HfConfig& config, std::string_view key, int64_t expected, int64_t fallback) {
  if (config.IntOr(key, fallback, kFloatGroups) == expected) return;
  config.Refuse(key, fmt::format("{}", expected), ErrorKind::kUnsupported);
}

// Refuses arguments of compressed-tensors other than floats of so many bits.
void ExpectFloats(const HfConfig& weights, int64_t bits) {
  ExpectString(weights, "type", "float", /*fallback=*/"int");
  ExpectInt(weights, "num_bits", bits, /*fallback=*/8);
  ExpectBool(weights, "symmetric", true, /*fallback=*/true);
  ExpectBool(weights, "dynamic", false, /*fallback=*/false);
}

// The same in groups of one size.
void ExpectGroups(const HfConfig& weights, int64_t bits, std::string_view strategy, int64_t group) {
  ExpectFloats(weights, bits);
  ExpectString(weights, "strategy", strategy, /*fallback=*/strategy);
  ExpectInt(weights, "group_size", group, /*fallback=*/0);
}

// Adds the outputs and inputs of a block.
PackedFormat InBlocks(PackedFormat format, const HfConfig& config, std::string_view key) {
  const auto block = config.Ints(key, kBlockSizes);
  if (block.size() != 2) config.Refuse(key, "the outputs and inputs of a block");
  format.group_outputs = block[0];
  format.group = block[1];
  return format;
}

}  // namespace

PackedFormat ReadFloatQuantized(const HfConfig& weights) {
  ExpectFloats(weights, 8);
  const std::string strategy = StrategyOf(weights);
  ExpectOneOf(weights, "strategy", strategy, {"tensor", "channel", "group", "block"});
  PackedFormat format = kFp8;
  if (strategy == "block") return InBlocks(format, weights, "block_structure");
  if (strategy == "group") format.group = weights.Int("group_size", {1, 1 << 30});
  if (strategy == "tensor") format.group_outputs = 0;
  return format;
}

PackedFormat ReadNvfp4(const HfConfig& weights) {
  ExpectGroups(weights, 4, "tensor_group", kNvfp4Group);
  return {.layout = Layout::kFloats4,
          .group = kNvfp4Group,
          .scale_type = ScaleType::kE4M3,
          .codes_suffix = ".weight_packed",
          .scales_suffix = kScaleSuffix,
          .factor_suffix = ".weight_global_scale",
          .factor_divides = true};
}

PackedFormat ReadMxfp4(const HfConfig& weights) {
  ExpectGroups(weights, 4, "group", kMxGroup);
  return {.layout = Layout::kFloats4,
          .group = kMxGroup,
          .scale_type = ScaleType::kPowers,
          .codes_suffix = ".weight_packed",
          .scales_suffix = kScaleSuffix};
}

PackedFormat ReadMxfp8(const HfConfig& weights) {
  ExpectGroups(weights, 8, "group", kMxGroup);
  PackedFormat format = kFp8;
  format.group = kMxGroup;
  format.scale_type = ScaleType::kPowers;
  return format;
}

void ExpectFloatInputs(const HfConfig& group) {
  const auto inputs = group.Object("input_activations");
  if (inputs) ExpectString(*inputs, "type", "float", /*fallback=*/"int");
}

PackedFormat ReadFp8(const HfConfig& config) {
  ExpectString(config, "fmt", "e4m3", /*fallback=*/"e4m3");
  constexpr std::string_view kBlock = "weight_block_size", kInputs = "activation_scheme";
  const std::string inputs = config.StringOr(kInputs, "dynamic");
  PackedFormat format = kFp8;
  if (config.Has(kBlock)) {
    ExpectOneOf(config, kInputs, inputs, {"dynamic"});
    format.scales_suffix = kInverseSuffix;
    return InBlocks(format, config, kBlock);
  }
  ExpectOneOf(config, kInputs, inputs, {"dynamic", "static"});
  format.group_outputs = 0;
  return format;
}

ModelOptConfig ReadModelOpt(const HfConfig& config) {
  // hf_quant_config.json has the older keys, and so have some config.json.
  const auto older = config.Object("quantization");
  const HfConfig& from = older ? *older : config;
  const std::string method = from.String("quant_algo");
  ExpectOneOf(from, "quant_algo", method, {"FP8", "NVFP4"});
  ModelOptConfig result{.format = kFp8,
                        .ignored = from.Strings(older ? "exclude_modules" : "ignore")};
  result.format.group_outputs = 0;
  if (method == "FP8") return result;
  if (older) ExpectInt(from, "group_size", kNvfp4Group, kNvfp4Group);
  if (const auto groups = config.Object("config_groups")) {
    for (const std::string& name : groups->Keys()) {
      const HfConfig weights = NeedObject(NeedObject(*groups, name), "weights");
      ExpectFloats(weights, 4);
      ExpectInt(weights, "group_size", kNvfp4Group, kNvfp4Group);
    }
  }
  result.format = {.layout = Layout::kFloats4,
                   .group = kNvfp4Group,
                   .scale_type = ScaleType::kE4M3,
                   .codes_suffix = ".weight",
                   .scales_suffix = kScaleSuffix,
                   .factor_suffix = ".weight_scale_2"};
  return result;
}

std::string_view OtherScalesSuffix(const PackedFormat& format) {
  return format.scales_suffix == kScaleSuffix ? kInverseSuffix : kScaleSuffix;
}

}  // namespace godwit
