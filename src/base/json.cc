#include "base/json.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/quote.h"

namespace godwit {
namespace {

// What the parser itself does not look at; nothing has been built yet.
void CheckText(std::string_view text, std::string_view what, JsonOptions options) {
  // Outside a string the parser takes a zero byte for the end: what follows would go unread.
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

// Throws where an object has two equal keys. A pass of its own over the text: with a parser
// callback, nlohmann's parser visits all siblings of every object that ends, which takes hours for
// a list of a million objects.
class KeyChecker {
 public:
  explicit KeyChecker(std::string_view what) : what_(what) {}

  bool start_object(size_t) {
    keys_.emplace_back();
    return true;
  }
  bool end_object() {
    keys_.pop_back();
    return true;
  }
  bool key(const std::string& key) {
    if (!keys_.back().insert(key).second) {
      Throw(ErrorKind::kFormat, "{}: JSON object with two keys {}", what_, Quote(key));
    }
    return true;
  }

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(int64_t) { return true; }
  bool number_unsigned(uint64_t) { return true; }
  bool number_float(double, const std::string&) { return true; }
  bool string(const std::string&) { return true; }
  bool binary(const nlohmann::json::binary_t&) { return true; }
  bool start_array(size_t) { return true; }
  bool end_array() { return true; }

  // Ends the pass; building the values will meet the same error and report it.
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) { return false; }

 private:
  const std::string_view what_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open, outermost first
};

// "[json.exception.parse_error.101] parse error at line 1, ...": the identifier means nothing to a
// user. What follows can quote a whole token of the input, as long as the input.
std::string Reason(std::string_view message, bool quote_input) {
  constexpr size_t kMaxBytes = 300;
  if (const size_t end = message.find("] "); message.starts_with('[') && end != message.npos) {
    message.remove_prefix(end + 2);
  }
  if (!quote_input) message = message.substr(0, message.find("; last read"));
  const std::string quoted = Quote(message, kMaxBytes);
  return quoted.substr(1, quoted.size() - 2);
}

template <typename Json>
Json Parse(std::string_view text, std::string_view what, JsonOptions options) {
  CheckText(text, what, options);
  if (options.reject_duplicate_keys) {
    KeyChecker checker(what);
    Json::sax_parse(text, &checker);
  }
  try {
    return Json::parse(text);
  } catch (const typename Json::exception& error) {
    Throw(ErrorKind::kFormat, "{}: {}", what, Reason(error.what(), options.quote_input));
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
