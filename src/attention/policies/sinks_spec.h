// SinksSpec: the meaning of "sinks:S+W,pin=N".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace godwit {

// A cache of S + W tokens. Its first max(S, N) are the beginning of the text, for good; the rest is
// the rolling window. A pinned prefix takes its tokens from the window, so that positions in the
// cache stay below those on which the model was trained.
struct SinksSpec {
  int64_t sinks = 0;   // S >= 0
  int64_t window = 0;  // W >= 1
  int64_t pin = 0;     // N, in tokens, 0 <= N < S + W

  int64_t cache() const { return sinks + window; }
  int64_t kept_first() const { return pin > sinks ? pin : sinks; }
  int64_t rolling() const { return cache() - kept_first(); }

  // The spec as --kv spells it.
  std::string ToString() const;

  bool operator==(const SinksSpec&) const = default;
};

// The meaning of a policy as --kv spells it; nothing for one of another kind. Throws as
// ParseSinksSpec.
std::optional<SinksSpec> FindSinksSpec(std::string_view kv);

// Parses the text after "sinks:". Throws Error(kInput) for senseless arguments.
SinksSpec ParseSinksSpec(std::string_view arguments);

}  // namespace godwit
