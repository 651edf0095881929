// Taking a text apart without copying it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace godwit {

// The first line of `text` without its newline; `text` goes on behind that.
inline std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// Splits "a,,b" into "a", "", "b": views of `text`, at least one.
inline std::vector<std::string_view> SplitAt(char mark, std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(mark);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Without the blanks and line ends around it.
inline std::string_view Stripped(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

}  // namespace godwit
