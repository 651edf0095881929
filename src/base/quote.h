// Untrusted text inside a message: names and values that came out of a file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace godwit {

// `text` in double quotes on one line. Control characters (a terminal would obey them), quotes,
// backslashes and bytes that are not UTF-8 are escaped; beyond max_bytes the middle is left out,
// since a hostile file may hold a name of many megabytes.
std::string Quote(std::string_view text, size_t max_bytes = 160);

}  // namespace godwit
