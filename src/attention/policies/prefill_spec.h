// What "window:64", "star:block=32K,anchor=8K" and "ring:chunk=2K" say: how the context of a text
// is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit {

inline constexpr std::string_view kPrefillUsage =
    "window:W, star[:block=N,anchor=N,overlap=N,tail=N,by-speed], ring[:chunk=N] or auto";

// A row of the context sees the first `anchor` tokens of the text, and of its own block of so many
// positions, and the `overlap` before it, the last `window` up to itself. The last `tail` rows of
// it see what they would if nothing were read so.
struct PrefillSpec {
  int64_t window = INT64_MAX;
  int64_t block = INT64_MAX;
  int64_t anchor = 0;   // at most a block
  int64_t overlap = 0;  // likewise
  int64_t tail = 0;
  // Ranks read and keep as many blocks as they are fast, and hold; else all as many.
  bool by_speed = false;
  // Or, if not 0, it sees all before it, and ranks read so many tokens each at a time.
  int64_t ring = 0;

  bool star() const { return block != INT64_MAX; }
  // As --prefill spells it.
  std::string ToString() const;
  // How the context is read, for people.
  std::string Explain() const;
};

// Throws Error(kInput) for what makes no sense.
PrefillSpec ParsePrefill(std::string_view spec);

}  // namespace godwit
