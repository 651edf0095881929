#include "base/json.h"

#include <cstddef>
#include <string>

#include "base/error.h"
#include "base/json_builder.h"
#include "base/quote.h"

namespace godwit {
namespace {

// Checks what the parser itself does not check, before anything is built.
void CheckText(std::string_view text, std::string_view what, JsonOptions options) {
  // Outside a string the parser takes a zero byte for the end and leaves the rest unread.
  if (const size_t zero = text.find('\0'); zero != text.npos) {
    Throw(ErrorKind::kFormat, "{}: expected JSON, found a zero byte at offset {}", what, zero);
  }
  int depth = 0;
  size_t values = 1;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++values;
      if (++depth > options.max_depth) {
        Throw(ErrorKind::kFormat, "{}: JSON nested more than {} levels deep at offset {}", what,
              options.max_depth, i);
      }
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      ++values;
    }
    if (values > options.max_values) {
      Throw(ErrorKind::kFormat, "{}: JSON of more than {} values at offset {}", what,
            options.max_values, i);
    }
  }
}

// Writes Infinity outside of strings as an object.
std::string WithoutInfinity(std::string_view text) {
  constexpr std::string_view kInfinity = "Infinity";
  std::string changed;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!in_string && text.substr(i).starts_with(kInfinity)) {
      changed += R"({"__float__":"Infinity"})";
      i += kInfinity.size() - 1;
      continue;
    }
    changed += text[i];
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\' && i + 1 < text.size()) changed += text[++i];
  }
  return changed;
}

template <typename Json>
Json Parse(std::string_view text, std::string_view what, JsonOptions options) {
  if (options.pythons_infinity && text.find("Infinity") != text.npos) {
    options.pythons_infinity = false;
    return Parse<Json>(WithoutInfinity(text), what, options);
  }
  CheckText(text, what, options);
  JsonBuilder<Json> builder(what, options);
  Json::sax_parse(text, &builder);
  return builder.Take();
}

}  // namespace

std::string JsonProblem(std::string_view message, bool quote_input) {
  constexpr size_t kMaxBytes = 300;
  if (const size_t end = message.find("] "); message.starts_with('[') && end != message.npos) {
    message.remove_prefix(end + 2);
  }
  if (!quote_input) message = message.substr(0, message.find("; last read"));
  const std::string quoted = Quote(message, kMaxBytes);
  return quoted.substr(1, quoted.size() - 2);
}

nlohmann::json ParseJson(std::string_view text, std::string_view what, JsonOptions options) {
  return Parse<nlohmann::json>(text, what, options);
}

nlohmann::ordered_json ParseOrderedJson(std::string_view text, std::string_view what,
                                        JsonOptions options) {
  return Parse<nlohmann::ordered_json>(text, what, options);
}

}  // namespace godwit
