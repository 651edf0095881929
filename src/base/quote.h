// Untrusted text where people read it: names and values out of a file, what a model has written.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace godwit {

// `text` in double quotes on one line. What a terminal would obey instead of show (control
// characters, also those of U+0080 to U+009F, and what turns the direction of writing), quotes,
// backslashes and bytes that are not UTF-8 are escaped; beyond max_bytes the middle is left out,
// since a hostile file may hold a name of many megabytes.
std::string Quote(std::string_view text, size_t max_bytes = 160);

// The same, but as it is if nothing in it would be escaped: for paths, which usually need nothing.
std::string QuoteUnlessPlain(std::string_view text);

// `text` as a terminal may have it: what Quote escapes is escaped, but for quotes, backslashes,
// tabs and newlines, which stay, and carriage returns, which are left out. Any number of lines. A
// character must not be cut in two between one call and the next; an escape sequence may be.
std::string Printable(std::string_view text);

}  // namespace godwit
