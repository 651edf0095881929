// UTF-8: where its characters begin and end, and bytes of unknown origin, or that arrive in pieces,
// turned into it.
//
// Every maximal malformed part becomes one U+FFFD: what Python's errors="replace", Rust's
// from_utf8_lossy and web browsers do.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace godwit {

// Whether a byte of well-formed text is not the first of its character.
constexpr bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

struct Utf8Sequence {
  size_t size;  // bytes that belong together: a character or the maximal part of one
  enum { kCharacter, kMalformed, kIncomplete } kind;
};

// The sequence with which `bytes`, which are not empty, begin.
Utf8Sequence FirstUtf8(std::string_view bytes);

// The first `bytes` of valid UTF-8, or the up to 3 fewer that end with a character.
inline std::string_view FirstCharacters(std::string_view text, size_t bytes) {
  if (bytes >= text.size()) return text;
  while (bytes > 0 && ContinuesCharacter(text[bytes])) --bytes;
  return text.substr(0, bytes);
}

// Repairs one stream of bytes; not thread-safe. The results of Push and Finish add up to
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
