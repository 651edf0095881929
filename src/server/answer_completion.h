// AnswerCompletion: one request for a completion, from its body to its answer, whole or streamed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "chat/completion_request.h"
#include "godwit/engine.h"
#include "server/answer_journal.h"
#include "server/answer_shape.h"
#include "server/http_server.h"
#include "server/kept_answer.h"
#include "server/slots.h"

namespace godwit::server {

struct CompletionPlan {
  const Engine& engine;
  const Session& session;  // tokenizes
  SessionOptions options;
  Slots::Taken& slot;
  std::function<std::string(const Error& error)> message_for;  // the message that the client gets
  // Where the events of the answer go; null: it is sent whole.
  KeptAnswer* kept = nullptr;
  AnswerJournal* journal = nullptr;         // with `kept`
  const JournaledAnswer* before = nullptr;  // what an earlier process has written of the answer
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

// An answer that cannot go on, because what its bits depend on has changed.
class AnswerDiffers : public Error {
 public:
  explicit AnswerDiffers(const std::string& difference);
};

// Answers a request and waits for the end; ends early once nobody reads the answer. Throws Error if
// nothing of an answer was sent yet, AnswerDiffers for one that cannot go on. A later error becomes
// the last piece of the answer, and so does any of an answer in the background.
CompletionOutcome AnswerCompletion(const CompletionPlan& plan,
                                   const chat::CompletionRequest& request, AnswerShape& shape,
                                   HttpReply& reply);

// The object "response" in the last of these events of /v1/responses; empty: there is none.
std::string ResponseIn(std::string_view events);

// Adds events to an answer. The last "response" in them becomes its body.
void PutEvents(KeptAnswer& kept, int lane, const std::string& events);

}  // namespace godwit::server
