#include "base/quote.h"

#include <fmt/format.h>

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

bool IsControl(std::string_view sequence) {
  const auto lead = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return lead < 0x20 || lead == 0x7f;
  // U+0080..U+009F, among them the one-character form of the terminal escape.
  return lead == 0xc2 && static_cast<uint8_t>(sequence[1]) < 0xa0;
}

void AppendEscaped(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || IsControl(sequence)) {
      for (const char c : sequence) {
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<uint8_t>(c));
      }
    } else {
      if (sequence == "\"" || sequence == "\\") out += '\\';
      out += sequence;
    }
    text.remove_prefix(sequence.size());
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

}  // namespace godwit
