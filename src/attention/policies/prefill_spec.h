// PrefillSpec: the meaning of "window:64", "star:block=32K,anchor=8K", "ring:chunk=2K" and "gpu",
// the ways in which the context of a text is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit {

inline constexpr std::string_view kPrefillUsage =
    "window:W, star[:block=N,anchor=N,overlap=N,tail=N,by-speed], ring[:chunk=N], gpu or auto";
inline constexpr std::string_view kGpuPrefill = "gpu";
// The longest block of a star whose block is a quarter of the context, as in the paper's tables.
inline constexpr int64_t kLongestQuarter = 32 << 10;

// The place of an anchor before a block (Star Attention, section 4.1 and table 3).
enum class AnchorAt {
  kFirst,     // where the text begins
  kPrevious,  // where the block before begins
  kRandom,    // somewhere between, another place for each block
};

// A row of the context sees the first `anchor` tokens of the text. It also sees its own block of
// `block` positions and the `overlap` before it, of these the last `window` up to itself. The last
// `tail` rows see as if the context were not read so.
struct PrefillSpec {
  int64_t window = INT64_MAX;
  int64_t block = INT64_MAX;
  int64_t anchor = 0;   // at most a block
  int64_t overlap = 0;  // at most a block
  int64_t tail = 0;
  // Whether ranks read and keep blocks in proportion to their speed, as far as their memory holds
  // them; else all equally many.
  bool by_speed = false;
  // The tokens that each rank reads at a time in a ring, in which a row sees all before it; 0: no
  // ring.
  int64_t ring = 0;
  // Whether a GPU attends for rows of the context, each of which sees all before it. The result
  // differs from the host's by rounding.
  bool on_gpu = false;

  // Whether `block` is to be a quarter of the context (Star Attention, section 3.1), which is not
  // known yet. Anchor and overlap are cut to such a block.
  bool quarter = false;

  AnchorAt anchor_at = AnchorAt::kFirst;
  // Whether the first block is no part of the text: tokens that only serve as the anchor of all
  // blocks behind the text's first. Question and answer do not see them.
  bool foreign = false;

  // Whether anchors are seen at another distance than that of their positions in the cache.
  bool moves_anchor() const { return anchor_at != AnchorAt::kFirst || foreign; }
  // The first position whose row sees an anchor.
  int64_t anchored_from() const { return foreign ? 2 * block : block; }
  // The position at which a query of that position looks at the anchor's keys, which stand at
  // theirs.
  int64_t AnchorPlace(int64_t position) const;

  // This spec for a context of so many tokens: with a block of a quarter of them, in whole tiles,
  // and kLongestQuarter at most. Itself, if its block has a number.
  PrefillSpec For(int64_t context_tokens) const;
  bool star() const { return block != INT64_MAX; }
  // The spec as --prefill spells it.
  std::string ToString() const;
  // An explanation for people of how the context is read.
  std::string Explain() const;
};

// Parses a spec. Throws Error(kInput) for senseless ones.
PrefillSpec ParsePrefill(std::string_view spec);

}  // namespace godwit
