// Answers in the shape of llama.cpp's API for editors, /infill: whole, or in pieces.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "chat/completion_json.h"
#include "chat/completion_request.h"
#include "godwit/engine.h"

namespace godwit::chat {

// A piece of a streamed answer: {"content", "tokens", "stop": false}.
nlohmann::ordered_json InfillPiece(const CompletionRequest& request, const Event& event);

// The last piece, without text, or the whole answer. "stop_type" is "eos", "word" or "limit".
// "tokens" are present with return_token_ids.
nlohmann::ordered_json InfillJson(const CompletionRequest& request, const GenerateResult& result,
                                  const CompletionName& name, bool is_whole);

}  // namespace godwit::chat
