#include "base/json.h"

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/quote.h"

namespace godwit {
namespace {

void CheckDepth(std::string_view text, std::string_view what, int max_depth) {
  int depth = 0;
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
      if (++depth > max_depth) {
        Throw(ErrorKind::kFormat, "{}: JSON nested more than {} levels deep at offset {}", what,
              max_depth, i);
      }
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

// "[json.exception.parse_error.101] parse error at line 1, ...": the identifier means nothing to a
// user. What follows can quote a whole token of the input, as long as the input.
std::string Reason(std::string_view message) {
  constexpr size_t kMaxBytes = 300;
  if (const size_t end = message.find("] "); message.starts_with('[') && end != message.npos) {
    message.remove_prefix(end + 2);
  }
  const std::string quoted = Quote(message, kMaxBytes);
  return quoted.substr(1, quoted.size() - 2);
}

template <typename Json>
Json Parse(std::string_view text, std::string_view what, JsonOptions options) {
  CheckDepth(text, what, options.max_depth);
  std::vector<std::set<std::string>> keys;
  const typename Json::parser_callback_t check_keys = [&](int, auto event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.template get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        Throw(ErrorKind::kFormat, "{}: JSON object with two keys {}", what, Quote(key));
      }
    }
    return true;
  };
  try {
    return Json::parse(text, options.reject_duplicate_keys ? check_keys : nullptr);
  } catch (const typename Json::exception& error) {
    Throw(ErrorKind::kFormat, "{}: {}", what, Reason(error.what()));
  }
}

}  // namespace

nlohmann::json ParseJson(std::string_view text, std::string_view what, JsonOptions options) {
  return Parse<nlohmann::json>(text, what, options);
}

nlohmann::ordered_json ParseOrderedJson(std::string_view text, std::string_view what,
                                        JsonOptions options) {
  return Parse<nlohmann::ordered_json>(text, what, options);
}

}  // namespace godwit
