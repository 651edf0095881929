// The model that a request names, found before the request is parsed: the model decides over
// defaults and limits of the other fields.
#pragma once

#include <string>
#include <string_view>

#include "base/cancel.h"

namespace godwit::server {

// The text "model" of a JSON object. Empty: the body has none, or cannot be read, which parsing it
// will show. Reads no further than to that field, and keeps nothing else. Throws Error(kCancelled).
std::string ModelInBody(std::string_view body, const CancelToken& gone);

}  // namespace godwit::server
