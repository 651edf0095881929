// JSON from files and sockets: one entry point with limits.
//
// nlohmann's values are destroyed and compared recursively, so text that nests deeper than
// JsonOptions::max_depth is refused before anything is built. Values own their content. Parsing is
// thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace godwit {

struct JsonOptions {
  // JSON leaves open which of two equal keys counts; where two readers could disagree, refuse.
  bool reject_duplicate_keys = false;
  int max_depth = 128;
};

// `what` names the text in messages, for example its file. Throws Error(kFormat) with the byte
// offset or the line and column of the problem. Strings must be UTF-8.
nlohmann::json ParseJson(std::string_view text, std::string_view what, JsonOptions options = {});

// The same, but objects keep the order of their keys: chat templates print them.
nlohmann::ordered_json ParseOrderedJson(std::string_view text, std::string_view what,
                                        JsonOptions options = {});

}  // namespace godwit
