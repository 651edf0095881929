// The name that was probably meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace godwit {

// The candidate with the fewest letters to insert, delete, replace or swap, if a typing mistake can
// explain them. Whether letters are large or small makes no difference.
std::optional<std::string> Nearest(std::string_view name, std::span<const std::string> candidates);

}  // namespace godwit
