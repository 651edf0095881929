#include "console/options/escape.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/quote.h"

namespace godwit::console {
namespace {

constexpr std::pair<char, char> kEscapes[] = {
    {'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'\\', '\\'}, {'\'', '\''}, {'"', '"'},
};

std::optional<char> Unescape(char letter) {
  for (const auto& [name, value] : kEscapes) {
    if (name == letter) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string ProcessEscapes(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 3).substr(1);
    uint8_t byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (text[i + 1] == 'x' && error == std::errc()) {
      result += static_cast<char>(byte);
      i += 1 + static_cast<size_t>(end - digits.data());
    } else if (const auto value = Unescape(text[i + 1])) {
      result += *value;
      ++i;
    } else {
      result += '\\';
    }
  }
  return result;
}

std::string ShowEscapes(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (c == '\r') {
      result += "\\r";
    } else if (c == '\\') {
      result += "\\\\";
    } else {
      result += c;
    }
  }
  return Printable(result);
}

}  // namespace godwit::console
