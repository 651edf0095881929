// Backslash escapes, both ways.
#pragma once

#include <string>
#include <string_view>

namespace godwit::console {

// Replaces \n \r \t \\ \' \" and \xHH (one or two digits) by their meaning. Any other backslash
// stays as it is.
std::string ProcessEscapes(std::string_view text);

// The text on one line: backslashes and whatever Printable (base/quote.h) escapes become escapes.
std::string ShowEscapes(std::string_view text);

}  // namespace godwit::console
