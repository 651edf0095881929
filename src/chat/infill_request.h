// Requests in the shape of llama.cpp's API for editors: the body of /infill, a text with a hole.
#pragma once

#include <nlohmann/json.hpp>

#include "chat/completion_request.h"

namespace godwit::chat {

// "input_prefix", "input_suffix", "input_extra": [{"filename", "text"}], and as "prompt" what
// stands in the hole already; with the fields of a text beside them, and "n_predict" for its
// "max_tokens". Of one answer. Throws as ParseCompletionRequest does.
CompletionRequest ParseInfillRequest(const nlohmann::ordered_json& body,
                                     const CompletionDefaults& defaults = {});

}  // namespace godwit::chat
