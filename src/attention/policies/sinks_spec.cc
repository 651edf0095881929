#include "attention/policies/sinks_spec.h"

#include <algorithm>
#include <optional>

#include "attention/core/token_count.h"
#include "base/error.h"

namespace godwit {
namespace {

constexpr std::string_view kKind = "sinks:";

}  // namespace

std::string SinksSpec::ToString() const {
  return fmt::format("{}{}+{}{}", kKind, sinks, window, pin > 0 ? fmt::format(",pin={}", pin) : "");
}

std::optional<SinksSpec> FindSinksSpec(std::string_view kv) {
  if (!kv.starts_with(kKind)) return std::nullopt;
  return ParseSinksSpec(kv.substr(kKind.size()));
}

SinksSpec ParseSinksSpec(std::string_view arguments) {
  constexpr std::string_view kPin = ",pin=";
  const size_t comma = std::min(arguments.find(','), arguments.size());
  const std::string_view budget = arguments.substr(0, comma);
  const size_t plus = std::min(budget.find('+'), budget.size());
  const auto sinks = ParseTokenCount(budget.substr(0, plus));
  const auto window = ParseTokenCount(budget.substr(std::min(plus + 1, budget.size())));
  const std::string_view rest = arguments.substr(comma);
  std::optional<int64_t> pin = 0;
  if (!rest.empty()) pin = ParseTokenCount(rest.starts_with(kPin) ? rest.substr(kPin.size()) : "");
  if (!sinks || !window || *window < 1 || !pin) {
    Throw(ErrorKind::kInput,
          "the KV policy \"sinks:{}\" is not sinks:S+W with S >= 0 sink tokens and a window of W "
          ">= 1 tokens (for example sinks:4+2044), or sinks:S+W,pin=N to keep the first N tokens",
          arguments);
  }
  const SinksSpec parsed{.sinks = *sinks, .window = *window, .pin = pin.value_or(0)};
  if (parsed.rolling() < 1) {
    Throw(ErrorKind::kInput,
          "the KV policy {} pins {} tokens in a cache of {}: nothing is left for the window",
          parsed.ToString(), parsed.pin, parsed.cache());
  }
  return parsed;
}

}  // namespace godwit
