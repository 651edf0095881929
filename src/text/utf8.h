// Bytes of unknown origin, or that arrive in pieces, turned into valid UTF-8.
//
// Every maximal malformed part becomes one U+FFFD: what Python's errors="replace", Rust's
// from_utf8_lossy and web browsers do.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace godwit {

// One stream of bytes; not thread-safe. What Push and Finish return adds up to
// ReplaceInvalidUtf8 of all bytes pushed, and no single result ends within a character.
class Utf8Repair {
 public:
  std::string Push(std::string_view bytes);

  // The incomplete character at the end, if any, as U+FFFD. The object is then as new.
  std::string Finish();

 private:
  std::string pending_;  // the start of a well-formed character: at most 3 bytes
};

std::string ReplaceInvalidUtf8(std::string_view bytes);

// Where the first malformed part begins, if there is one.
std::optional<size_t> FirstInvalidUtf8(std::string_view bytes);

}  // namespace godwit
