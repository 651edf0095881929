// AnswerBatch: answers the requests of a file, several at once, and writes each result when it is
// done.
#pragma once

#include <cstdint>
#include <string>

#include "chat/completion_request.h"
#include "cli/batch/batch_journal.h"
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
  BatchJournal* journal = nullptr;  // of answers in progress; null: there is none
};

struct BatchSummary {
  int64_t answered = 0;  // in this run, failed ones included
  int64_t failed = 0;    // failed ones of these
  std::string failure;   // the reason of the first failure
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  KvReport longest;        // the longest text of all
  bool cancelled = false;  // by Ctrl-C
};

// Answers the requests of the plan. An error of one request becomes its result, and the others go
// on. Throws Error(kIo) if results cannot be written, and Error(kFormat) if the file of requests
// has changed. Throws the error that ended the ranks' work, if they have ended
// (Engine::ranks_ended).
BatchSummary AnswerBatch(const Engine& engine, const BatchPlan& plan,
                         console::AppendedFile& results);

}  // namespace godwit::cli
