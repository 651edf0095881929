#include "base/quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/utf8.h"

namespace godwit {
namespace {

// The first character of `text`, or its first byte if that begins none.
std::string_view FirstCharacter(std::string_view text) {
  const Utf8Sequence first = FirstUtf8(text);
  return text.substr(0, first.kind == Utf8Sequence::kCharacter ? first.size : 1);
}

// Whether a terminal shows the character instead of obeying it, and whether it is UTF-8.
bool IsPrintable(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(character[i]); };
  if (character.size() == 1) return byte(0) >= 0x20 && byte(0) < 0x7f;
  // U+0080..U+009F, among them the one-character form of the terminal escape.
  if (byte(0) == 0xc2) return byte(1) >= 0xa0;
  // U+202A..U+202E and U+2066..U+2069 show later text in another order.
  if (byte(0) != 0xe2) return true;
  return !(byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) &&
         !(byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
}

void AppendHex(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<uint8_t>(c));
  }
}

void AppendEscaped(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const std::string_view character = FirstCharacter(text);
    if (!IsPrintable(character)) {
      AppendHex(character, out);
    } else {
      if (character == "\"" || character == "\\") out += '\\';
      out += character;
    }
    text.remove_prefix(character.size());
  }
}

}  // namespace

std::string Quote(std::string_view text, size_t max_bytes) {
  std::string out = "\"";
  if (text.size() <= max_bytes) {
    AppendEscaped(text, out);
  } else {
    size_t head = max_bytes / 2;
    size_t tail = text.size() - max_bytes / 2;
    for (int i = 0; i < 3 && head > 0 && ContinuesCharacter(text[head]); ++i) --head;
    for (int i = 0; i < 3 && tail < text.size() && ContinuesCharacter(text[tail]); ++i) ++tail;
    AppendEscaped(text.substr(0, head), out);
    fmt::format_to(std::back_inserter(out), "[... {} bytes ...]", tail - head);
    AppendEscaped(text.substr(tail), out);
  }
  out += '"';
  return out;
}

std::string QuoteUnlessPlain(std::string_view text) {
  std::string quoted = Quote(text, text.size());
  return quoted.size() == text.size() + 2 ? std::string(text) : Quote(text);
}

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view character = FirstCharacter(text);
    if (IsPrintable(character) || character == "\t" || character == "\n") {
      out += character;
    } else if (character != "\r") {
      AppendHex(character, out);
    }
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace godwit
