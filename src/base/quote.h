// Untrusted text where people read it: names and values out of a file, what a model has written.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace godwit {

// Quotes `text` on one line. Quotes, backslashes, bytes that are not UTF-8, and characters that a
// terminal would obey instead of show are escaped. These are control characters, also those of
// U+0080 to U+009F, and those that turn the direction of writing. Beyond max_bytes the middle is
// left out, since a hostile file may hold a name of many megabytes.
std::string Quote(std::string_view text, size_t max_bytes = 160);

// The same, but as it is if nothing in it would be escaped: for paths, which usually need nothing.
std::string QuoteUnlessPlain(std::string_view text);

// Makes `text` safe for a terminal, any number of lines. It escapes what Quote escapes, but keeps
// quotes, backslashes, tabs and newlines, and leaves out carriage returns. A character must not be
// cut in two between one call and the next; an escape sequence may be.
std::string Printable(std::string_view text);

}  // namespace godwit
