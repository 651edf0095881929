// Numbers of tokens, as specs of policies have them.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace godwit {

// "12" -> 12, "32K" -> 32768, "1M" -> 1048576, for lengths of up to 2^40 tokens.
inline std::optional<int64_t> ParseTokenCount(std::string_view text) {
  int64_t unit = 1;
  if (text.ends_with('K')) unit = 1 << 10;
  if (text.ends_with('M')) unit = 1 << 20;
  if (unit != 1) text.remove_suffix(1);
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value < 0 || value > kMost / unit) return std::nullopt;
  return value * unit;
}

}  // namespace godwit
