// Taking a text apart without copying it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace godwit {

// The first line of `text` without its newline; `text` goes on behind that.
inline std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// The first `bytes` of valid UTF-8, or the up to 3 fewer that end with a character.
inline std::string_view FirstCharacters(std::string_view text, size_t bytes) {
  if (bytes >= text.size()) return text;
  while (bytes > 0 && (text[bytes] & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace godwit
