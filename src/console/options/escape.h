// Backslash escapes, both ways.
#pragma once

#include <string>
#include <string_view>

namespace godwit::console {

// \n \r \t \\ \' \" and \xHH (one or two digits) become what they stand for; any other backslash
// stays as it is.
std::string ProcessEscapes(std::string_view text);

// On one line: backslashes and what Printable (base/quote.h) escapes become escapes.
std::string ShowEscapes(std::string_view text);

}  // namespace godwit::console
