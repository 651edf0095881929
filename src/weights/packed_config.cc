#include "weights/packed_config.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "weights/tensor_rows.h"

namespace godwit {
namespace {

using Layout = PackedFormat::Layout;

// The least group: scales are repeated for the kernels' groups, the smallest of which has 16
// inputs.
constexpr int64_t kMinGroup = 16;
constexpr IntRange kGroupSizes = {-1, 1 << 30};
constexpr int64_t kNf4Group = 64;  // of all files that transformers writes

int ReadBits(const HfConfig& config, std::string_view key) {
  const int64_t bits = config.Int(key, {1, 64});
  if (bits != 4 && bits != 8) config.Refuse(key, "4 or 8", ErrorKind::kUnsupported);
  return static_cast<int>(bits);
}

// The group size. 0: all inputs.
int64_t ReadGroup(const HfConfig& config, std::string_view key) {
  const int64_t group = config.Int(key, kGroupSizes);
  if (group == -1) return 0;
  if (group == 0 || group % kMinGroup != 0) {
    config.Refuse(key, "-1 or a multiple of 16", ErrorKind::kUnsupported);
  }
  return group;
}

// Act order in compressed-tensors: a name, or whether there is an order. "weight" orders inputs
// during quantization and leaves no trace in the groups.
bool ReadActOrder(const HfConfig& weights) {
  constexpr std::string_view kKey = "actorder";
  if (!weights.Has(kKey)) return false;
  if (weights.IsAmong(kKey, "[true,false]")) return weights.BoolOr(kKey, false);
  const std::string order = weights.String(kKey);
  ExpectOneOf(weights, kKey, order, {"group", "dynamic", "weight", "static"});
  return order == "group" || order == "dynamic";
}

}  // namespace

std::string StrategyOf(const HfConfig& arguments) {
  const int64_t group_size = arguments.IntOr("group_size", 0, {-1, 1 << 30});
  return arguments.StringOr("strategy", group_size == 0    ? "tensor"
                                        : group_size == -1 ? "channel"
                                                           : "group");
}

PackedFormat ReadPackQuantized(const HfConfig& weights) {
  ExpectString(weights, "type", "int", /*fallback=*/"int");
  ExpectBool(weights, "dynamic", false, /*fallback=*/false);
  const std::string strategy = StrategyOf(weights);
  ExpectOneOf(weights, "strategy", strategy, {"group", "channel"});
  return {.layout = Layout::kPackQuantized,
          .bits = weights.Has("num_bits") ? ReadBits(weights, "num_bits") : 8,
          .group = strategy == "group" ? ReadGroup(weights, "group_size") : 0,
          .zeros = !weights.BoolOr("symmetric", true),
          .act_order = ReadActOrder(weights)};
}

PackedFormat ReadIntQuantized(const HfConfig& weights) {
  ExpectBool(weights, "symmetric", true, /*fallback=*/true);
  PackedFormat format = ReadPackQuantized(weights);
  format.layout = Layout::kIntQuantized;
  format.act_order = false;  // no tensor of this layout holds one
  return format;
}

PackedFormat ReadGptq(const HfConfig& config) {
  const std::string version = config.StringOr("checkpoint_format", "gptq");
  ExpectOneOf(config, "checkpoint_format", version, {"gptq", "gptq_v2"});
  ExpectBool(config, "is_marlin_format", false, /*fallback=*/false);
  ExpectString(config, "pack_dtype", "int32", /*fallback=*/"int32");
  if (const auto dynamic = config.Object("dynamic")) {
    for (const std::string& rule : dynamic->Keys()) {
      // A rule "-:" leaves layers alone, which their tensors show anyway.
      if (rule.starts_with("-:")) continue;
      config.Refuse("dynamic", "no separate bits or groups for single layers",
                    ErrorKind::kUnsupported);
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
  ExpectOneOf(config, "version", config.StringOr("version", "gemm"), {"gemm", "GEMM"});
  ExpectBool(config, "zero_point", true, /*fallback=*/true);
  if (config.Int("bits", {1, 64}) != 4) config.Refuse("bits", "4", ErrorKind::kUnsupported);
  return {.layout = Layout::kAwq, .group = ReadGroup(config, "group_size"), .zeros = true};
}

PackedFormat ReadNf4(const HfConfig& config) {
  ExpectBool(config, "load_in_8bit", false, /*fallback=*/false);
  ExpectString(config, "bnb_4bit_quant_type", "nf4", /*fallback=*/"fp4");
  ExpectString(config, "bnb_4bit_quant_storage", "uint8", /*fallback=*/"uint8");
  return {.layout = Layout::kNf4,
          .group = kNf4Group,
          .nested = config.BoolOr("bnb_4bit_use_double_quant", false)};
}

Nf4State ReadNf4State(const TensorInfo& state, const PackedFormat& format, int64_t outputs,
                      int64_t inputs) {
  constexpr size_t kMaxBytes = 1 << 16;
  if (state.bytes.size() > kMaxBytes) {
    Throw(ErrorKind::kFormat, "tensor {} has {} bytes, expected {} at most", state.name,
          state.bytes.size(), kMaxBytes);
  }
  const std::string text(reinterpret_cast<const char*>(state.bytes.data()), state.bytes.size());
  const HfConfig fields = HfConfig::Parse(text, "tensor " + state.name);
  ExpectOneOf(fields, "quant_type", fields.String("quant_type"), {"nf4"});
  if (fields.Int("blocksize", kGroupSizes) != format.group) {
    fields.Refuse("blocksize", fmt::format("{}", format.group), ErrorKind::kUnsupported);
  }
  if (fields.Ints("shape", {0, int64_t{1} << 40}) != std::vector{outputs, inputs}) {
    fields.Refuse("shape", fmt::format("[{}, {}]", outputs, inputs));
  }
  if (!format.nested) return {};
  return {.nested_group = fields.Int("nested_blocksize", {1, 1 << 30}),
          .nested_offset = static_cast<float>(fields.Float("nested_offset", {-1e30, 1e30}))};
}

void CheckNf4Levels(const TensorInfo& levels) {
  const std::vector<float> found = ReadAllRows(levels);
  const auto expected = LevelsOf({.layout = Layout::kNf4});
  for (size_t i = 0; i < expected.size(); ++i) {
    constexpr float kTolerance = 1e-6f;
    if (std::fabs(found[i] - expected[i]) <= kTolerance) continue;
    Throw(ErrorKind::kUnsupported, "tensor {}: level {} is {}, expected {} for nf4", levels.name, i,
          found[i], expected[i]);
  }
}

}  // namespace godwit
