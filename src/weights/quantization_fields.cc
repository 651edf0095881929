#include "weights/quantization_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace godwit {

void ExpectOneOf(const HfConfig& config, std::string_view key, std::string_view found,
                 std::initializer_list<std::string_view> accepted) {
  if (std::ranges::find(accepted, found) != accepted.end()) return;
  config.Refuse(key, fmt::format("{}", fmt::join(accepted, " or ")), ErrorKind::kUnsupported);
}

void ExpectBool(const HfConfig& config, std::string_view key, bool expected, bool fallback) {
  if (config.BoolOr(key, fallback) == expected) return;
  config.Refuse(key, expected ? "true" : "false", ErrorKind::kUnsupported);
}

HfConfig NeedObject(const HfConfig& config, std::string_view key) {
  auto object = config.Object(key);
  if (!object) config.Refuse(key, "an object");
  return *std::move(object);
}

std::string StrategyOf(const HfConfig& arguments) {
  const int64_t group_size = arguments.IntOr("group_size", 0, {-1, 1 << 30});
  return arguments.StringOr("strategy", group_size == 0    ? "tensor"
                                        : group_size == -1 ? "channel"
                                                           : "group");
}

}  // namespace godwit
