// AnswerCompletion: one request for a completion, from its body to its answer, whole or streamed.
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
  const Session& session;  // tokenizes
  SessionOptions options;
  Slots::Taken& slot;
  std::function<std::string(const Error& error)> message_for;  // the message that the client gets
};

// Token counts and times of an answered request.
struct CompletionOutcome {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t disk_tokens = 0;
  int64_t output_tokens = 0;
  // Times of the first answer: from its start in the engine to the first token, and the average
  // between two tokens.
  double first_token_ms = 0;
  double token_ms = 0;
};

// Answers a request and waits for the end; ends early once nobody reads the answer. Throws Error if
// nothing of an answer was sent yet. A later error becomes the last piece of the answer.
CompletionOutcome AnswerCompletion(const CompletionPlan& plan,
                                   const chat::CompletionRequest& request, AnswerShape& shape,
                                   HttpReply& reply);

}  // namespace godwit::server
