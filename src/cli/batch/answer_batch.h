// Answers the requests of a file, several at once, and writes down each result as it is there.
#pragma once

#include <cstdint>
#include <string>

#include "chat/completion_request.h"
#include "cli/batch/result_file.h"
#include "console/terminal/appended_file.h"
#include "godwit/engine.h"

namespace godwit::cli {

struct BatchPlan {
  std::string requests;  // the file
  std::string model;     // the name that stands in the answers
  int64_t total = 0;     // requests, the finished ones included
  FinishedRequests finished;
  chat::CompletionDefaults defaults;
  SessionOptions session;
  int64_t parallel = 1;
};

struct BatchSummary {
  int64_t answered = 0;  // now, the failed ones included
  int64_t failed = 0;    // of these
  std::string failure;   // why the first one has
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  KvReport longest;        // the longest text of all
  bool cancelled = false;  // by Ctrl-C
};

// What is wrong with one request becomes its result, and the others go on. Throws Error(kIo) where
// results cannot be written, Error(kFormat) where the file of requests is no longer what it was,
// and what ended the ranks' work, if they have ended (Engine::ranks_ended).
BatchSummary AnswerBatch(const Engine& engine, const BatchPlan& plan,
                         console::AppendedFile& results);

}  // namespace godwit::cli
