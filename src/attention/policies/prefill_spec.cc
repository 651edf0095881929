#include "attention/policies/prefill_spec.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "attention/policies/token_count.h"
#include "base/error.h"
#include "base/quote.h"

namespace godwit {
namespace {

constexpr std::string_view kWindow = "window:", kStar = "star", kStarWith = "star:";
constexpr int64_t kUsualBlock = 32 << 10;

// "block=N", "anchor=N", "overlap=N", "tail=N", any of them.
PrefillSpec ParseStar(std::string_view settings) {
  std::optional<int64_t> block, anchor, overlap, tail;
  const std::array<std::pair<std::string_view, std::optional<int64_t>*>, 4> known = {
      {{"block", &block}, {"anchor", &anchor}, {"overlap", &overlap}, {"tail", &tail}}};
  for (bool more = !settings.empty(); more;) {
    const size_t comma = settings.find(',');
    const std::string_view setting = settings.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) settings.remove_prefix(comma + 1);
    const size_t equals = std::min(setting.find('='), setting.size());
    const auto found = std::ranges::find(known, setting.substr(0, equals),
                                         [](const auto& one) { return one.first; });
    const auto number = ParseTokenCount(setting.substr(std::min(equals + 1, setting.size())));
    if (found == known.end() || *found->second || !number) {
      Throw(ErrorKind::kInput,
            "star is star:block=N,anchor=N,overlap=N,tail=N, each at most once and a number of "
            "tokens (for example star:block=32K,anchor=8K), not {}",
            Quote(setting));
    }
    *found->second = number;
  }
  PrefillSpec spec{.block = block.value_or(kUsualBlock)};
  spec.anchor = anchor.value_or(spec.block);
  spec.overlap = overlap.value_or(0);
  spec.tail = tail.value_or(0);
  if (spec.block < 1) Throw(ErrorKind::kInput, "star: a block of 0 tokens holds nothing");
  if (spec.anchor > spec.block) {
    Throw(ErrorKind::kInput,
          "star: an anchor of {} tokens is longer than a block of {}; the most that helps is a "
          "block's length",
          spec.anchor, spec.block);
  }
  if (spec.overlap > spec.block) {
    Throw(ErrorKind::kInput,
          "star: an overlap of {} tokens is longer than a block of {}, and then larger blocks do "
          "the same",
          spec.overlap, spec.block);
  }
  return spec;
}

}  // namespace

std::string PrefillSpec::ToString() const {
  if (!star()) return fmt::format("{}{}", kWindow, window - 1);
  return fmt::format("{}block={},anchor={}{}{}", kStarWith, block, anchor,
                     overlap > 0 ? fmt::format(",overlap={}", overlap) : "",
                     tail > 0 ? fmt::format(",tail={}", tail) : "");
}

std::string PrefillSpec::Explain() const {
  if (!star()) return fmt::format("a window: each token sees the {} before it", window - 1);
  return fmt::format(
      "blocks of {} tokens: each token sees those before it in its own{}, and the first {} of the "
      "text{}",
      block, overlap > 0 ? fmt::format(" and the {} before that", overlap) : "", anchor,
      tail > 0 ? fmt::format("; the last {} of the context are read as ever", tail) : "");
}

PrefillSpec ParsePrefill(std::string_view spec) {
  if (spec == kStar) return ParseStar("");
  if (spec.starts_with(kStarWith)) return ParseStar(spec.substr(kStarWith.size()));
  std::optional<int64_t> window;
  if (spec.starts_with(kWindow)) window = ParseTokenCount(spec.substr(kWindow.size()));
  if (!window || *window < 1) {
    Throw(
        ErrorKind::kInput,
        "the context can be read by {}, with a window of W >= 1 tokens (for example window:1024), "
        "not by {}",
        kPrefillUsage, Quote(spec));
  }
  // Itself, and those before it.
  return {.window = *window + 1};
}

}  // namespace godwit
