// Integer arithmetic on sizes that come from files, sockets and JSON. It gives nullopt where the
// exact result does not fit, so that no caller can carry a wrapped value into an allocation or a
// bound. Both operands have one type: a mixed call would convert a negative size silently.
#pragma once

#include <concepts>
#include <optional>

namespace godwit {

template <std::integral T>
constexpr std::optional<T> CheckedAdd(T a, T b) {
  T result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
constexpr std::optional<T> CheckedMul(T a, T b) {
  T result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

}  // namespace godwit
