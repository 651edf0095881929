#include "attention/policies/prefill_spec.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "attention/core/token_count.h"
#include "base/error.h"
#include "base/quote.h"
#include "ops/kv_layout.h"

namespace godwit {
namespace {

constexpr std::string_view kWindow = "window:", kStar = "star",
                           kStarWith = "star:", kBySpeed = "by-speed", kRing = "ring",
                           kRingWith = "ring:chunk=";
constexpr int64_t kUsualBlock = 32 << 10;
// Rows of a chunk: enough that sending a key costs little beside attending to it
// (docs/papers/ring-attention.md), and few enough that a round ends soon.
constexpr int64_t kUsualChunk = 2 << 10;
constexpr int64_t kMaxChunk = 1 << 20;  // also the limit of a step

// Any of "block=N", "anchor=N", "overlap=N", "tail=N" and "by-speed".
PrefillSpec ParseStar(std::string_view settings) {
  std::optional<int64_t> block, anchor, overlap, tail;
  bool by_speed = false;
  const std::array<std::pair<std::string_view, std::optional<int64_t>*>, 4> known = {
      {{"block", &block}, {"anchor", &anchor}, {"overlap", &overlap}, {"tail", &tail}}};
  for (bool more = !settings.empty(); more;) {
    const size_t comma = settings.find(',');
    const std::string_view setting = settings.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) settings.remove_prefix(comma + 1);
    if (setting == kBySpeed && !std::exchange(by_speed, true)) continue;
    const size_t equals = std::min(setting.find('='), setting.size());
    const auto found = std::ranges::find(known, setting.substr(0, equals),
                                         [](const auto& one) { return one.first; });
    const auto number = ParseTokenCount(setting.substr(std::min(equals + 1, setting.size())));
    if (found == known.end() || *found->second || !number) {
      Throw(ErrorKind::kInput,
            "expected star:block=N,anchor=N,overlap=N,tail=N,by-speed, each at most once, with "
            "numbers of tokens (for example star:block=32K,anchor=8K), found {}",
            Quote(setting));
    }
    *found->second = number;
  }
  PrefillSpec spec{.block = block.value_or(kUsualBlock), .by_speed = by_speed};
  spec.anchor = anchor.value_or(spec.block);
  spec.overlap = overlap.value_or(0);
  spec.tail = tail.value_or(0);
  if (spec.block < 1)
    Throw(ErrorKind::kInput, "star: expected a block of at least 1 token, found 0");
  if (spec.anchor > spec.block) {
    Throw(ErrorKind::kInput,
          "star: an anchor of {} tokens is longer than a block of {}: shorten it to a block's "
          "length at most",
          spec.anchor, spec.block);
  }
  if (spec.overlap > spec.block) {
    Throw(ErrorKind::kInput,
          "star: an overlap of {} tokens is longer than a block of {}: shorten it, or use larger "
          "blocks",
          spec.overlap, spec.block);
  }
  return spec;
}

PrefillSpec ParseRing(std::string_view spec) {
  if (spec == kRing) return {.ring = kUsualChunk};
  std::optional<int64_t> chunk;
  if (spec.starts_with(kRingWith)) chunk = ParseTokenCount(spec.substr(kRingWith.size()));
  if (!chunk || *chunk < 1 || *chunk > kMaxChunk || *chunk % kTileTokens != 0) {
    Throw(ErrorKind::kInput,
          "expected ring:chunk=N with a multiple of {} tokens, at most {} (for example "
          "ring:chunk=4K), found {}",
          kTileTokens, kMaxChunk, Quote(spec));
  }
  return {.ring = *chunk};
}

}  // namespace

std::string PrefillSpec::ToString() const {
  if (ring > 0) return fmt::format("{}{}", kRingWith, ring);
  if (!star()) return fmt::format("{}{}", kWindow, window - 1);
  return fmt::format("{}block={},anchor={}{}{}{}", kStarWith, block, anchor,
                     overlap > 0 ? fmt::format(",overlap={}", overlap) : "",
                     tail > 0 ? fmt::format(",tail={}", tail) : "",
                     by_speed ? fmt::format(",{}", kBySpeed) : "");
}

std::string PrefillSpec::Explain() const {
  if (ring > 0) return fmt::format("all ranks together, {} tokens of each rank at a time", ring);
  if (!star()) return fmt::format("a window: each token sees the {} before it", window - 1);
  return fmt::format(
      "blocks of {} tokens: each token sees the tokens before it in its own block{}, and the first "
      "{} of the text{}",
      block, overlap > 0 ? fmt::format(" and the {} before that", overlap) : "", anchor,
      tail > 0 ? fmt::format("; the last {} of the context see all before them", tail) : "");
}

PrefillSpec ParsePrefill(std::string_view spec) {
  if (spec == kStar) return ParseStar("");
  if (spec.starts_with(kStarWith)) return ParseStar(spec.substr(kStarWith.size()));
  if (spec.starts_with(kRing)) return ParseRing(spec);
  std::optional<int64_t> window;
  if (spec.starts_with(kWindow)) window = ParseTokenCount(spec.substr(kWindow.size()));
  if (!window || *window < 1) {
    Throw(ErrorKind::kInput,
          "expected {}, with a window of W >= 1 tokens (for example window:1024), found {}",
          kPrefillUsage, Quote(spec));
  }
  // The token itself and those before it.
  return {.window = *window + 1};
}

}  // namespace godwit
