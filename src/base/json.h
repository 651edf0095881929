// JSON from files and sockets, with one entry point that has limits, and back to text.
//
// nlohmann's values are destroyed and compared recursively, and two bytes of text can become a
// hundred bytes of values. So text that nests deeper than JsonOptions::max_depth or holds more than
// max_values is refused before anything is built. Values own their content. Parsing is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/cancel.h"

namespace godwit {

// The work of a text, for callers that limit it: n values take a few n log n comparisons, whatever
// the keys.
struct JsonWork {
  int64_t values = 0;
  int64_t comparisons = 0;  // of keys with each other
};

struct JsonOptions {
  // JSON leaves open which of two equal keys counts; where two readers could disagree, refuse.
  bool reject_duplicate_keys = false;
  int max_depth = 128;
  // Counted by commas and opening brackets, of which there are at least as many. At the limit the
  // values take some 100 MB, and their strings no more than the text.
  size_t max_values = 1'000'000;
  // Whether messages may quote what stands at the place that is wrong.
  bool quote_input = true;
  // Whether to read Python's Infinity, which is no JSON, as {"__float__": "Infinity"}: so
  // transformers writes it today, and it fits every reader.
  bool pythons_infinity = false;
  const CancelToken* cancel = nullptr;
  JsonWork* work = nullptr;  // has what was done, whether the text was JSON or not
};

// Parses a text. `what` names it in messages, for example its file. Throws Error(kFormat) with the
// byte offset or the line and column of the problem, Error(kCancelled). Strings must be UTF-8; a
// zero byte is an error anywhere. The last of two equal keys counts.
nlohmann::json ParseJson(std::string_view text, std::string_view what, JsonOptions options = {});

// The same, but objects keep the order of their keys: chat templates print them.
nlohmann::ordered_json ParseOrderedJson(std::string_view text, std::string_view what,
                                        JsonOptions options = {});

// Prints JSON on one line, or with that indent on several. Bytes that are no UTF-8 are replaced.
template <typename Json>
std::string DumpJson(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace godwit
