#include "base/utf8.h"

#include <cstdint>
#include <utility>

namespace godwit {
namespace {

using Sequence = Utf8Sequence;

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

// The second byte's range depends on the first. It excludes overlong forms, surrogates and values
// above U+10FFFF.
Utf8Sequence FirstUtf8(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, Sequence::kCharacter};
  if (lead < 0xc2 || lead > 0xf4) return {1, Sequence::kMalformed};
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {i, Sequence::kIncomplete};
    if (byte(i) < low || byte(i) > high) return {i, Sequence::kMalformed};
    low = 0x80;
    high = 0xbf;
  }
  return {length, Sequence::kCharacter};
}

std::string Utf8Repair::Push(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Sequence sequence = FirstUtf8(rest);
    if (sequence.kind == Sequence::kIncomplete) break;
    out += sequence.kind == Sequence::kCharacter ? rest.substr(0, sequence.size) : kReplacement;
    rest.remove_prefix(sequence.size);
  }
  pending_ = std::string(rest);
  return out;
}

std::string Utf8Repair::Finish() {
  return std::exchange(pending_, "").empty() ? "" : std::string(kReplacement);
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  Utf8Repair repair;
  std::string out = repair.Push(bytes);
  return out + repair.Finish();
}

std::optional<size_t> FirstInvalidUtf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const Sequence sequence = FirstUtf8(bytes.substr(at));
    if (sequence.kind != Sequence::kCharacter) return at;
    at += sequence.size;
  }
  return std::nullopt;
}

}  // namespace godwit
