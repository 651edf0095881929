#include "base/quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace godwit {
namespace {

// The length of the well-formed UTF-8 sequence at the start of `text`, or 0. The second byte's
// range depends on the first: overlong forms, surrogates and values above U+10FFFF are malformed.
size_t Utf8SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// The first character of `text`, or its first byte if that begins none.
std::string_view FirstCharacter(std::string_view text) {
  return text.substr(0, std::max<size_t>(Utf8SequenceLength(text), 1));
}

// Of a character: neither obeyed by a terminal instead of shown, nor something that UTF-8 has not.
bool IsPrintable(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(character[i]); };
  if (character.size() == 1) return byte(0) >= 0x20 && byte(0) < 0x7f;
  // U+0080..U+009F, among them the one-character form of the terminal escape.
  if (byte(0) == 0xc2) return byte(1) >= 0xa0;
  // U+202A..U+202E and U+2066..U+2069 show what follows in another order.
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

bool IsContinuation(char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; }

}  // namespace

std::string Quote(std::string_view text, size_t max_bytes) {
  std::string out = "\"";
  if (text.size() <= max_bytes) {
    AppendEscaped(text, out);
  } else {
    size_t head = max_bytes / 2;
    size_t tail = text.size() - max_bytes / 2;
    for (int i = 0; i < 3 && head > 0 && IsContinuation(text[head]); ++i) --head;
    for (int i = 0; i < 3 && tail < text.size() && IsContinuation(text[tail]); ++i) ++tail;
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
