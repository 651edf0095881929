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
                           kStarWith = "star:", kQuarter = "block=quarter", kBySpeed = "by-speed",
                           kRing = "ring", kRingWith = "ring:chunk=";
constexpr int64_t kUsualBlock = 32 << 10;
// Rows of a chunk: enough that sending a key costs little beside attending to it
// (docs/papers/ring-attention.md), and few enough that a round ends soon.
constexpr int64_t kUsualChunk = 2 << 10;
constexpr int64_t kMaxChunk = 1 << 20;  // also the limit of a step

constexpr std::string_view kForeign = "foreign";
constexpr std::pair<std::string_view, AnchorAt> kPlaces[] = {{"at=previous", AnchorAt::kPrevious},
                                                             {"at=random", AnchorAt::kRandom}};

// The settings that are words. Returns false for another one, or one that is set already.
bool SetWord(std::string_view setting, PrefillSpec& spec) {
  if (setting == kBySpeed) return !std::exchange(spec.by_speed, true);
  if (setting == kQuarter) return !std::exchange(spec.quarter, true);
  if (setting == kForeign) return !std::exchange(spec.foreign, true);
  for (const auto& [name, place] : kPlaces) {
    if (setting != name) continue;
    return std::exchange(spec.anchor_at, place) == AnchorAt::kFirst;
  }
  return false;
}

void CheckMovedAnchor(const PrefillSpec& spec) {
  if (!spec.moves_anchor()) return;
  if (spec.overlap > 0 || spec.anchor == 0 || spec.by_speed) {
    Throw(ErrorKind::kInput,
          "star: an anchor in another place, or of other tokens, needs an anchor, and neither "
          "overlap nor by-speed");
  }
  if (spec.foreign && (spec.quarter || spec.anchor != spec.block)) {
    Throw(ErrorKind::kInput,
          "star: a foreign anchor takes the place of the first block, so block needs a number and "
          "the anchor its length, found a block of {} and an anchor of {}",
          spec.quarter ? "a quarter" : fmt::format("{} tokens", spec.block), spec.anchor);
  }
}

// Any of "block=N", "anchor=N", "overlap=N", "tail=N" and the words.
PrefillSpec ParseStar(std::string_view settings) {
  std::optional<int64_t> block, anchor, overlap, tail;
  PrefillSpec spec;
  const std::array<std::pair<std::string_view, std::optional<int64_t>*>, 4> known = {
      {{"block", &block}, {"anchor", &anchor}, {"overlap", &overlap}, {"tail", &tail}}};
  for (bool more = !settings.empty(); more;) {
    const size_t comma = settings.find(',');
    const std::string_view setting = settings.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) settings.remove_prefix(comma + 1);
    if (SetWord(setting, spec)) continue;
    const size_t equals = std::min(setting.find('='), setting.size());
    const auto found = std::ranges::find(known, setting.substr(0, equals),
                                         [](const auto& one) { return one.first; });
    const auto number = ParseTokenCount(setting.substr(std::min(equals + 1, setting.size())));
    if (found == known.end() || *found->second || !number) {
      Throw(ErrorKind::kInput,
            "expected star:block=N,anchor=N,overlap=N,tail=N,by-speed,at=previous,at=random,"
            "foreign, each at most once, with numbers of tokens (for example "
            "star:block=32K,anchor=8K), or block=quarter, found {}",
            Quote(setting));
    }
    *found->second = number;
  }
  if (spec.quarter && block) {
    Throw(ErrorKind::kInput, "star: expected one block, found a quarter and {} tokens", *block);
  }
  spec.block = block.value_or(kUsualBlock);
  spec.anchor = anchor.value_or(spec.block);
  spec.overlap = overlap.value_or(0);
  spec.tail = tail.value_or(0);
  if (spec.quarter && !anchor) spec.anchor = kLongestQuarter;
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
  CheckMovedAnchor(spec);
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

PrefillSpec PrefillSpec::For(int64_t context_tokens) const {
  if (!quarter) return *this;
  PrefillSpec spec = *this;
  spec.quarter = false;
  const int64_t tiles =
      std::max<int64_t>(1, (context_tokens + 4 * kTileTokens - 1) / (4 * kTileTokens));
  spec.block = std::min(tiles * kTileTokens, kLongestQuarter);
  spec.anchor = std::min(anchor, spec.block);
  spec.overlap = std::min(overlap, spec.block);
  return spec;
}

int64_t PrefillSpec::AnchorPlace(int64_t position) const {
  const int64_t in_text = position - (foreign ? block : 0);
  const int64_t before = in_text / block - 1;  // blocks between the first and this one
  if (anchor_at == AnchorAt::kFirst || before <= 0) return in_text;
  if (anchor_at == AnchorAt::kPrevious) return in_text - before * block;
  // Any mixing of the block's number will do, if it is the same everywhere.
  uint64_t mixed = static_cast<uint64_t>(before) * 0x9E3779B97F4A7C15;
  mixed ^= mixed >> 29;
  mixed *= 0xBF58476D1CE4E5B9;
  return in_text - static_cast<int64_t>((mixed >> 20) % static_cast<uint64_t>(before * block + 1));
}

std::string PrefillSpec::ToString() const {
  if (ring > 0) return fmt::format("{}{}", kRingWith, ring);
  if (on_gpu) return std::string(kGpuPrefill);
  if (!star()) return fmt::format("{}{}", kWindow, window - 1);
  const std::string sizes = !quarter ? fmt::format("block={},anchor={}", block, anchor)
                            : anchor < kLongestQuarter
                                ? fmt::format("{},anchor={}", kQuarter, anchor)
                                : std::string(kQuarter);
  std::string text = fmt::format("{}{}", kStarWith, sizes);
  if (overlap > 0) text += fmt::format(",overlap={}", overlap);
  if (tail > 0) text += fmt::format(",tail={}", tail);
  if (by_speed) text += fmt::format(",{}", kBySpeed);
  for (const auto& [name, place] : kPlaces) {
    if (place == anchor_at) text += fmt::format(",{}", name);
  }
  if (foreign) text += fmt::format(",{}", kForeign);
  return text;
}

std::string PrefillSpec::Explain() const {
  if (ring > 0) return fmt::format("all ranks together, {} tokens of each rank at a time", ring);
  if (on_gpu) return "a GPU: each token sees all before it, with other rounding than the CPU's";
  if (!star()) return fmt::format("a window: each token sees the {} before it", window - 1);
  if (quarter) {
    return fmt::format(
        "blocks of a quarter of it, {} tokens at most: each token sees the tokens before it in its "
        "own block{}, and the first of the text, {}{}",
        kLongestQuarter, overlap > 0 ? fmt::format(" and the {} before that", overlap) : "",
        anchor < kLongestQuarter ? fmt::format("{} at most", anchor) : "as many as a block has",
        tail > 0 ? fmt::format("; the last {} of the context see all before them", tail) : "");
  }
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
  if (spec == kGpuPrefill) return {.on_gpu = true};
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
