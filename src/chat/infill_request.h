// Requests in the shape of llama.cpp's API for editors: the body of /infill, a text with a hole.
#pragma once

#include <nlohmann/json.hpp>

#include "chat/completion_request.h"

namespace godwit::chat {

// Parses a request for one answer: "input_prefix", "input_suffix", "input_extra": [{"filename",
// "text"}], and as "prompt" the text that already stands in the hole. The fields of a text
// completion are accepted, too, with "n_predict" for its "max_tokens". Throws as
// ParseCompletionRequest does.
CompletionRequest ParseInfillRequest(const nlohmann::ordered_json& body,
                                     const CompletionDefaults& defaults = {});

}  // namespace godwit::chat
