#include "chat/python_call.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

namespace godwit::chat {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxNesting = 64;

// Appends a code point; one that is no character becomes malformed UTF-8.
void AppendUtf8(uint32_t code, std::string& text) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  const auto rest = [&](int shift) { add(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    rest(0);
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    rest(6);
    rest(0);
  } else {
    add(0xF0 | code >> 18);
    rest(12);
    rest(6);
    rest(0);
  }
}

class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : text_(text) {}

  std::optional<ToolCall> Call() {
    ToolCall call;
    call.name = Name();
    Json arguments = Json::object();
    if (!Take('(')) return std::nullopt;
    while (!Take(')')) {
      if (!arguments.empty() && !Take(',')) return std::nullopt;
      if (Take(')')) break;
      const std::string key = Name();
      if (key.empty() || arguments.contains(key) || !Take('=')) return std::nullopt;
      auto value = Value(0);
      if (!value) return std::nullopt;
      arguments[key] = std::move(*value);
    }
    if (!AtEnd()) return std::nullopt;
    call.arguments = DumpJson(arguments);
    return call;
  }

  std::optional<Json> Whole() {
    auto value = Value(0);
    return AtEnd() ? value : std::nullopt;
  }

 private:
  void SkipBlanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size()));
  }
  bool AtEnd() {
    SkipBlanks();
    return text_.empty();
  }
  bool Take(char c) {
    SkipBlanks();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::string Name() {
    SkipBlanks();
    size_t size = 0;
    while (size < text_.size() && IsNameByte(text_[size])) ++size;
    std::string name(text_.substr(0, size));
    text_.remove_prefix(size);
    return name;
  }

  std::optional<Json> Value(int nesting) {
    SkipBlanks();
    if (text_.empty() || nesting > kMaxNesting) return std::nullopt;
    const char c = text_.front();
    if (c == '"' || c == '\'') return Text();
    if (c == '[' || c == '(') return List(c == '[' ? ']' : ')', nesting);
    if (c == '{') return Dict(nesting);
    return Word();
  }

  std::optional<Json> List(char end, int nesting) {
    text_.remove_prefix(1);
    Json list = Json::array();
    while (!Take(end)) {
      if (!list.empty() && !Take(',')) return std::nullopt;
      if (Take(end)) break;
      auto value = Value(nesting + 1);
      if (!value) return std::nullopt;
      list.push_back(std::move(*value));
    }
    return list;
  }

  std::optional<Json> Dict(int nesting) {
    text_.remove_prefix(1);
    Json dict = Json::object();
    while (!Take('}')) {
      if (!dict.empty() && !Take(',')) return std::nullopt;
      if (Take('}')) break;
      auto key = Value(nesting + 1);
      if (!key || !key->is_string() || !Take(':')) return std::nullopt;
      auto value = Value(nesting + 1);
      if (!value) return std::nullopt;
      dict[key->get_ref<const std::string&>()] = std::move(*value);
    }
    return dict;
  }

  std::optional<Json> Word() {
    size_t size = 0;
    while (size < text_.size() && (IsNameByte(text_[size]) || text_[size] == '+')) ++size;
    const std::string_view word = text_.substr(0, size);
    text_.remove_prefix(size);
    if (word == "True" || word == "true") return Json(true);
    if (word == "False" || word == "false") return Json(false);
    if (word == "None" || word == "null") return Json(nullptr);
    try {
      Json number = ParseOrderedJson(word, "a number");
      if (number.is_number()) return number;
    } catch (const Error&) {
      // The text is no number.
    }
    return std::nullopt;
  }

  std::optional<Json> Text() {
    const char quote = text_.front();
    text_.remove_prefix(1);
    std::string value;
    while (!text_.empty() && text_.front() != quote) {
      const char c = text_.front();
      text_.remove_prefix(1);
      if (c != '\\') {
        value += c;
      } else if (!Escaped(value)) {
        return std::nullopt;
      }
    }
    if (!Take(quote)) return std::nullopt;
    return Json(ReplaceInvalidUtf8(value));
  }

  // Reads an escape sequence behind its backslash.
  bool Escaped(std::string& value) {
    if (text_.empty()) return false;
    const char c = text_.front();
    text_.remove_prefix(1);
    constexpr std::string_view kLetters = "abfnrtv0", kMeant = "\a\b\f\n\r\t\v";
    if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      return Character(digits, value);
    }
    if (const size_t at = kLetters.find(c); at != kLetters.npos) {
      value += at < kMeant.size() ? kMeant[at] : '\0';
    } else if (c == '\\' || c == '"' || c == '\'') {
      value += c;
    } else if (c != '\n') {  // a backslash joins lines; otherwise both characters stay
      value += '\\';
      value += c;
    }
    return true;
  }

  bool Character(size_t digits, std::string& value) {
    if (text_.size() < digits) return false;
    uint32_t code = 0;
    for (const char c : text_.substr(0, digits)) {
      const bool is_digit = c >= '0' && c <= '9';
      const bool is_letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!is_digit && !is_letter) return false;
      code = code * 16 + static_cast<uint32_t>(is_digit ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    text_.remove_prefix(digits);
    if (code > 0x10FFFF) return false;
    AppendUtf8(code, value);
    return true;
  }

  std::string_view text_;
};

}  // namespace

bool IsNameByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         c == '-' || c == '.';
}

std::optional<ToolCall> ParsePythonCall(std::string_view text) { return PythonReader(text).Call(); }

std::optional<std::string> ParsePythonLiteral(std::string_view text) {
  const auto value = PythonReader(text).Whole();
  if (!value) return std::nullopt;
  return DumpJson(*value);
}

}  // namespace godwit::chat
