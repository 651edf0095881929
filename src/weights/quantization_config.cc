#include "weights/quantization_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "weights/float_codes_config.h"
#include "weights/packed_config.h"

namespace godwit {
namespace {

constexpr std::string_view kRegexPrefix = "re:";

void ExpectInt8(const HfConfig& arguments) {
  if (arguments.IntOr("num_bits", 8, {1, 64}) != 8) {
    arguments.Refuse("num_bits", "8", ErrorKind::kUnsupported);
  }
  ExpectString(arguments, "type", "int", /*fallback=*/"int");
}

// Returns whether each output has a scale.
bool ReadWeights(const HfConfig& arguments) {
  ExpectInt8(arguments);
  ExpectBool(arguments, "symmetric", true, /*fallback=*/true);
  ExpectBool(arguments, "dynamic", false, /*fallback=*/false);
  const std::string strategy = StrategyOf(arguments);
  ExpectOneOf(arguments, "strategy", strategy, {"channel", "tensor"});
  return strategy == "channel";
}

InputQuantization ReadInput(const HfConfig& arguments) {
  ExpectInt8(arguments);
  const std::string strategy = StrategyOf(arguments);
  ExpectOneOf(arguments, "strategy", strategy, {"token", "tensor"});
  const bool dynamic = arguments.BoolOr("dynamic", false);
  if (strategy == "token" && !dynamic) {
    arguments.Refuse("dynamic", "true, because the strategy is token", ErrorKind::kUnsupported);
  }
  return {.kind = strategy == "token" ? InputScale::kPerToken
                  : dynamic           ? InputScale::kPerTensor
                                      : InputScale::kStatic,
          .symmetric = arguments.BoolOr("symmetric", true)};
}

// A format of float codes. null: there is none of this name.
PackedFormat (*FloatReader(std::string_view format))(const HfConfig& weights) {
  if (format == "float-quantized") return ReadFloatQuantized;
  if (format == "nvfp4-pack-quantized") return ReadNvfp4;
  if (format == "mxfp4-pack-quantized") return ReadMxfp4;
  if (format == "mxfp8-quantized") return ReadMxfp8;
  return nullptr;
}

// Whether weights are floats, of which "naive-quantized" has some.
bool AreFloats(const HfConfig& group) {
  const auto weights = group.Object("weights");
  return weights && weights->StringOr("type", "int") == "float";
}

// Inputs are quantized for each block anyway, which is finer than for each token.
LayerQuantization ReadPacked(const HfConfig& group,
                             PackedFormat (*read_weights)(const HfConfig& weights)) {
  if (group.Has("input_activations")) {
    const InputQuantization input = ReadInput(NeedObject(group, "input_activations"));
    if (input != InputQuantization()) {
      group.Refuse("input_activations", "none, or symmetric int8 per token",
                   ErrorKind::kUnsupported);
    }
  }
  return {.packed = read_weights(NeedObject(group, "weights"))};
}

// Whether weights have fewer bits or groups, and so are no int8 weights of "int-quantized".
bool AreGrouped(const HfConfig& group) {
  const auto weights = group.Object("weights");
  return weights &&
         (weights->IntOr("num_bits", 8, {1, 64}) == 4 || StrategyOf(*weights) == "group");
}

LayerQuantization ReadInt8(const HfConfig& group) {
  if (!group.Has("input_activations")) {
    group.Refuse("input_activations", "int8, like the weights", ErrorKind::kUnsupported);
  }
  return {.scale_per_output = ReadWeights(NeedObject(group, "weights")),
          .input = ReadInput(NeedObject(group, "input_activations"))};
}

// Each group has a format of its own if there are several.
LayerQuantization ReadQuantization(const HfConfig& config, const HfConfig& group) {
  if (group.Has("output_activations")) {
    group.Refuse("output_activations", "none", ErrorKind::kUnsupported);
  }
  const HfConfig& from = group.Has("format") ? group : config;
  const std::string format = from.StringOr("format", "");
  ExpectOneOf(from, "format", format,
              {"int-quantized", "naive-quantized", "pack-quantized", "float-quantized",
               "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp8-quantized"});
  if (format == "pack-quantized") return ReadPacked(group, ReadPackQuantized);
  const bool naive_floats = format == "naive-quantized" && AreFloats(group);
  if (const auto read = naive_floats ? ReadFloatQuantized : FloatReader(format)) {
    ExpectFloatInputs(group);
    return {.packed = read(NeedObject(group, "weights"))};
  }
  return AreGrouped(group) ? ReadPacked(group, ReadIntQuantized) : ReadInt8(group);
}

// Refuses settings outside the groups that would change how tensors are read.
void RefuseOtherStorage(const HfConfig& config) {
  ExpectOneOf(config, "quantization_status", config.StringOr("quantization_status", "compressed"),
              {"compressed", "frozen"});
  if (const auto transforms = config.Object("transform_config");
      transforms && !transforms->Keys().empty()) {
    config.Refuse("transform_config", "none", ErrorKind::kUnsupported);
  }
  if (const auto sparsity = config.Object("sparsity_config")) {
    ExpectOneOf(*sparsity, "format", sparsity->StringOr("format", "dense"), {"dense"});
  }
}

// QuantizationConfig::cache_scheme. Older files of ModelOpt have the name of an algorithm.
std::string CacheSchemeOf(const HfConfig& config) {
  if (const auto scheme = config.Object("kv_cache_scheme")) {
    const std::string type = scheme->StringOr("type", "int");
    ExpectOneOf(*scheme, "type", type, {"int", "float"});
    return fmt::format("{}-bit {}", scheme->IntOr("num_bits", 8, {1, 64}),
                       type == "int" ? "integers" : "floats");
  }
  const auto older = config.Object("quantization");
  return (older ? *older : config).StringOr("kv_cache_quant_algo", "");
}

// An entry of `targets` or `ignore`, or of `llm_int8_skip_modules`.
class Pattern {
 public:
  // Throws std::regex_error for a regular expression that is not supported.
  explicit Pattern(std::string text);
  // Matches modules that end with the text, or contain it as whole parts. Versions of transformers
  // differ in whether it may stand in the middle.
  static Pattern Part(std::string text);
  // Matches modules as a whole; `*` stands for any characters.
  static Pattern Wildcard(std::string text);

  bool Matches(std::string_view module) const;
  // Names come first, then regular expressions, then classes, each by the alphabet.
  auto Rank() const { return std::tie(kind_, text_); }

 private:
  enum class Kind { kName, kRegex, kClass, kPart, kWildcard };

  Pattern(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  Kind kind_ = Kind::kName;
  std::string text_;
  std::regex regex_;
};

// The matcher of regular expressions. libstdc++ has one without backtracking, whose stack is as
// deep as the expression is long. LLVM's library has one alone: it throws std::regex_error after a
// number of steps that grows with the text's length.
#ifdef __GLIBCXX__
constexpr auto kMatcher = std::regex::ECMAScript | std::regex_constants::__polynomial;
#else
constexpr auto kMatcher = std::regex::ECMAScript;
#endif

// Whether an expression is safe. Backtracking takes exponential time for some expressions and a
// call for every step: a config.json could hang the loader or exhaust its stack. A counted
// repetition would make the stack of kMatcher longer than the expression's text. The matcher has no
// back references, but reads their numbers first, even those that no integer holds.
bool IsSimple(std::string_view expression) {
  constexpr size_t kMaxBytes = 1000;
  for (size_t at = 1; at < expression.size(); ++at) {
    if (expression[at - 1] == '\\' && '0' <= expression[at] && expression[at] <= '9') return false;
  }
  return expression.size() <= kMaxBytes && expression.find('{') == std::string_view::npos;
}

Pattern::Pattern(std::string text) : text_(std::move(text)) {
  if (text_ == "Linear") kind_ = Kind::kClass;
  if (!text_.starts_with(kRegexPrefix)) return;
  if (!IsSimple(text_)) throw std::regex_error(std::regex_constants::error_complexity);
  kind_ = Kind::kRegex;
  regex_.assign(text_.substr(kRegexPrefix.size()), kMatcher);
}

Pattern Pattern::Part(std::string text) { return {Kind::kPart, std::move(text)}; }

Pattern Pattern::Wildcard(std::string text) { return {Kind::kWildcard, std::move(text)}; }

// Where a part behind a `*` is found first, none of the later places would match more.
bool MatchesWildcard(std::string_view pattern, std::string_view text) {
  size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  while ((star = pattern.find('*')) != std::string_view::npos) {
    const size_t at = text.find(pattern.substr(0, star));
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + star);
    pattern.remove_prefix(star + 1);
  }
  return text.ends_with(pattern);
}

bool Pattern::Matches(std::string_view module) const {
  switch (kind_) {
    case Kind::kName:
      return text_ == module;
    case Kind::kRegex:  // as Python's re.match: from the start, not necessarily to the end
      try {
        return std::regex_search(module.begin(), module.end(), regex_,
                                 std::regex_constants::match_continuous);
      } catch (const std::regex_error&) {
        Throw(ErrorKind::kUnsupported,
              "the regular expression {} of the quantization takes too long for {}", Quote(text_),
              module);
      }
    case Kind::kClass:
      return true;  // only linear layers are asked for
    case Kind::kPart:
      return module.ends_with(text_) ||
             fmt::format(".{}.", module).find(fmt::format(".{}.", text_)) != std::string::npos;
    case Kind::kWildcard:
      return MatchesWildcard(text_, module);
  }
  return false;
}

std::vector<Pattern> ReadPatterns(const HfConfig& config, std::string_view key) {
  std::vector<Pattern> patterns;
  for (const std::string& text : config.Strings(key)) {
    try {
      patterns.emplace_back(text);
    } catch (const std::regex_error&) {
      config.Refuse(key, fmt::format("names and simple regular expressions, not {}", Quote(text)),
                    ErrorKind::kUnsupported);
    }
  }
  return patterns;
}

LayerQuantization ReadBitsandbytes(const HfConfig& config) {
  if (config.BoolOr("load_in_4bit", false)) return {.packed = ReadNf4(config)};
  ExpectBool(config, "load_in_8bit", true, /*fallback=*/false);
  ExpectBool(config, "llm_int8_has_fp16_weight", false, /*fallback=*/false);
  const double threshold = config.FloatOr("llm_int8_threshold", 6.0, {0, 1e30});
  return {.input = {.outlier_threshold = static_cast<float>(threshold)},
          .format = Int8Format::kBitsandbytes};
}

// Reads names of modules, or of parts of them.
std::vector<Pattern> ReadSkippedModules(const HfConfig& config, std::string_view key) {
  std::vector<Pattern> patterns;
  for (const std::string& name : config.Strings(key)) {
    if (name.find_first_of("\\^$*+?|()[]{}") != std::string::npos) {
      config.Refuse(key, fmt::format("names of modules, not {}", Quote(name)),
                    ErrorKind::kUnsupported);
    }
    patterns.push_back(Pattern::Part(name));
  }
  return patterns;
}

// A method that treats all layers alike.
struct Method {
  Pattern target = Pattern("Linear");
  LayerQuantization quantization;
  std::vector<Pattern> ignored;
};

Method ReadMethod(const HfConfig& config, std::string_view method, const std::string& head) {
  if (method == "bitsandbytes") {
    constexpr std::string_view kSkip = "llm_int8_skip_modules";
    return {.quantization = ReadBitsandbytes(config),
            .ignored =
                config.Has(kSkip) ? ReadSkippedModules(config, kSkip) : std::vector{Pattern(head)}};
  }
  if (method == "gptq") {
    const bool all = config.BoolOr("lm_head", false);
    return {.quantization = {.packed = ReadGptq(config)},
            .ignored = all ? std::vector<Pattern>() : std::vector{Pattern(head)}};
  }
  if (method == "mxfp4") {
    return {.target = Pattern::Part("experts"), .quantization = {.packed = kMxfp4}, .ignored = {}};
  }
  if (method == "modelopt") {
    ModelOptConfig read = ReadModelOpt(config);
    Method result{.quantization = {.packed = read.format}, .ignored = {}};
    for (std::string& name : read.ignored) {
      result.ignored.push_back(Pattern::Wildcard(std::move(name)));
    }
    return result;
  }
  Method result{.quantization = {.packed = method == "fp8"          ? ReadFp8(config)
                                           : method == "fbgemm_fp8" ? kFbgemmFp8
                                                                    : ReadAwq(config)},
                .ignored = ReadSkippedModules(config, "modules_to_not_convert")};
  if (method == "fp8") {
    // AutoFP8's.
    for (Pattern& pattern : ReadPatterns(config, "ignored_layers")) {
      result.ignored.push_back(std::move(pattern));
    }
  }
  result.ignored.emplace_back(head);
  return result;
}

}  // namespace

std::string Describe(const LayerQuantization& quantization) {
  if (quantization.packed) return Describe(*quantization.packed);
  const char* input = quantization.input.kind == InputScale::kPerToken    ? "per token"
                      : quantization.input.kind == InputScale::kPerTensor ? "per tensor"
                                                                          : "with a static scale";
  const float threshold = quantization.input.outlier_threshold;
  return fmt::format(
      "int8 weights with a scale per {}, input quantized {}{}{}",
      quantization.scale_per_output ? "output" : "tensor", input,
      quantization.input.symmetric ? "" : ", asymmetric",
      threshold > 0 ? fmt::format(", its elements of {} or more in float", threshold) : "");
}

struct QuantizationConfig::Rules {
  struct Target {
    Pattern pattern;
    LayerQuantization quantization;
  };
  std::vector<Target> targets;
  std::vector<Pattern> ignored;
};

std::optional<std::string_view> QuantizationKey(const HfConfig& config) {
  for (const std::string_view key : {"quantization_config", "compression_config"}) {
    if (config.Has(key)) return key;
  }
  return std::nullopt;
}

QuantizationConfig QuantizationConfig::Read(const HfConfig& config, const std::string& head) try {
  QuantizationConfig result;
  const auto key = QuantizationKey(config);
  if (!key) return result;
  const HfConfig block = NeedObject(config, *key);
  result.cache_scheme_ = CacheSchemeOf(block);
  auto rules = std::make_shared<Rules>();
  // The older keys are bitsandbytes' own.
  const std::string method =
      block.StringOr("quant_method", block.Has("load_in_8bit") || block.Has("load_in_4bit")
                                         ? "bitsandbytes"
                                         : "compressed-tensors");
  ExpectOneOf(block, "quant_method", method,
              {"compressed-tensors", "bitsandbytes", "gptq", "awq", "mxfp4", "fp8", "fbgemm_fp8",
               "modelopt"});
  if (method != "compressed-tensors") {
    Method all = ReadMethod(block, method, head);
    rules->targets = {{std::move(all.target), std::move(all.quantization)}};
    rules->ignored = std::move(all.ignored);
    result.rules_ = std::move(rules);
    return result;
  }
  RefuseOtherStorage(block);
  const HfConfig groups = NeedObject(block, "config_groups");
  for (const std::string& name : groups.Keys()) {
    const HfConfig group = NeedObject(groups, name);
    const LayerQuantization quantization = ReadQuantization(block, group);
    for (Pattern& pattern : ReadPatterns(group, "targets")) {
      rules->targets.push_back({std::move(pattern), quantization});
    }
  }
  // The first match counts; this is compressed-tensors' order.
  std::ranges::stable_sort(rules->targets, {},
                           [](const Rules::Target& target) { return target.pattern.Rank(); });
  rules->ignored = ReadPatterns(block, "ignore");
  result.rules_ = std::move(rules);
  return result;
} catch (const Error& error) {
  if (error.kind() != ErrorKind::kUnsupported) throw;
  ThrowWith({ErrorCode::kQuantizedOtherwise}, ErrorKind::kUnsupported,
            "{}; instead, take the unquantized model and convert it to int8 while loading",
            error.what());
}

const LayerQuantization* QuantizationConfig::Find(std::string_view module) const {
  if (rules_ == nullptr) return nullptr;
  const auto matches = [&](const Pattern& pattern) { return pattern.Matches(module); };
  if (std::ranges::any_of(rules_->ignored, matches)) return nullptr;
  const auto found = std::ranges::find_if(rules_->targets, matches, &Rules::Target::pattern);
  return found == rules_->targets.end() ? nullptr : &found->quantization;
}

std::vector<LayerQuantization> QuantizationConfig::Distinct() const {
  std::vector<LayerQuantization> distinct;
  if (rules_ == nullptr) return distinct;
  for (const Rules::Target& target : rules_->targets) {
    if (std::ranges::find(distinct, target.quantization) == distinct.end()) {
      distinct.push_back(target.quantization);
    }
  }
  return distinct;
}

bool QuantizationConfig::ScaleEachToken() {
  const auto shares = [](const Rules::Target& target) {
    return !target.quantization.packed && target.quantization.input.kind == InputScale::kPerTensor;
  };
  if (rules_ == nullptr || std::ranges::none_of(rules_->targets, shares)) return false;
  auto rules = std::make_shared<Rules>(*rules_);  // copies of this configuration share the others
  for (Rules::Target& target : rules->targets) {
    if (shares(target)) target.quantization.input.kind = InputScale::kPerToken;
  }
  rules_ = std::move(rules);
  return true;
}

}  // namespace godwit
