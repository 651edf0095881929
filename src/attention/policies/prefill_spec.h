// PrefillSpec: the meaning of "window:64", "star:block=32K,anchor=8K" and "ring:chunk=2K", the ways
// in which the context of a text is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit {

inline constexpr std::string_view kPrefillUsage =
    "window:W, star[:block=N,anchor=N,overlap=N,tail=N,by-speed], ring[:chunk=N] or auto";

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

  bool star() const { return block != INT64_MAX; }
  // The spec as --prefill spells it.
  std::string ToString() const;
  // An explanation for people of how the context is read.
  std::string Explain() const;
};

// Parses a spec. Throws Error(kInput) for senseless ones.
PrefillSpec ParsePrefill(std::string_view spec);

}  // namespace godwit
