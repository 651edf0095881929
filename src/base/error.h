// Raising errors inside the library.
//
// There are three tiers. An Error is thrown for what ends a request. std::optional or an enum is
// returned for expected outcomes. assert() guards against our own bugs and is never reachable from
// input.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "godwit/error.h"

namespace godwit {

// Formats and throws: Throw(ErrorKind::kInput, "token {} is outside the vocabulary of {}", id, n).
template <typename... Args>
[[noreturn]] void Throw(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

// Throws an Error with data for the program.
template <typename... Args>
[[noreturn]] void ThrowWith(const ErrorData& data, ErrorKind kind,
                            fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...), data);
}

}  // namespace godwit
