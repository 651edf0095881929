// One request for a completion, from its body to its answer, whole or streamed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "chat/completion_request.h"
#include "godwit/engine.h"
#include "server/answer_shape.h"
#include "server/http_server.h"
#include "server/slots.h"

namespace godwit::server {

struct CompletionPlan {
  const Engine& engine;
  const Session& session;  // to make tokens with
  SessionOptions options;
  Slots::Taken& slot;
  std::function<std::string(const Error& error)> message_for;  // what is said of one
};

// What came of it.
struct CompletionOutcome {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t disk_tokens = 0;
  int64_t output_tokens = 0;
  // Of the first answer: from the engine's taking it, and on average between two tokens.
  double first_token_ms = 0;
  double token_ms = 0;
};

// Waits for the end; ends early where nobody reads the answer any more. Throws Error before
// anything of an answer was sent: what is wrong later is its last piece.
CompletionOutcome AnswerCompletion(const CompletionPlan& plan,
                                   const chat::CompletionRequest& request, AnswerShape& shape,
                                   HttpReply& reply);

}  // namespace godwit::server
