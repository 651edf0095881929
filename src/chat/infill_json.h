// Answers in the shape of llama.cpp's API for editors, of /infill: whole, or in pieces.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "chat/completion_json.h"
#include "chat/completion_request.h"
#include "godwit/engine.h"

namespace godwit::chat {

// {"content", "tokens", "stop": false}: a piece of an answer that is streamed.
nlohmann::ordered_json InfillPiece(const CompletionRequest& request, const Event& event);

// The last one of these, with nothing of the text, or the whole answer: "stop_type" is "eos",
// "word" or "limit". "tokens" are there with return_token_ids.
nlohmann::ordered_json InfillJson(const CompletionRequest& request, const GenerateResult& result,
                                  const CompletionName& name, bool is_whole);

}  // namespace godwit::chat
