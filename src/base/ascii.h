// Blanks and letters of ASCII, whatever the locale. Other characters are neither.
#pragma once

#include <string>
#include <string_view>

namespace godwit {

inline bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
inline bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

inline std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (IsUpper(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace godwit
