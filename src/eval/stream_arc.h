// Streaming question answering (StreamingLLM, section 4.3, table 5): the questions of ARC in one
// endless text, each answered in words.
//
//   Question: What is ice?
//   - Air
//   - Solid water
//   Answer: Solid water
//   Question: ...
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "eval/question.h"
#include "eval/stream.h"

namespace godwit::eval {

// An answer. Right is the right choice to the letter; both are stripped.
struct StreamAnswer : StreamTurn {
  int64_t row = 0;  // the question's row
};

struct StreamArcOptions {
  Stream::Options stream{.max_new_tokens = 64};

  // Whether an earlier run has answered this question: `fed` and `right` are then filled in.
  std::function<bool(StreamAnswer& answer)> recall;
  // The callbacks run on the calling thread and may throw.
  std::function<void(const StreamAnswer& answer)> on_answer;
  std::function<void(int64_t done_tokens, int64_t total_tokens)> on_progress;
};

struct StreamArcResult {
  int64_t questions = 0;
  int64_t right = 0;
  int64_t tokens = 0;  // of the stream
  KvReport kv;
  double elapsed_ms = 0;
};

// The prompt up to "Answer:". It shows the choices: without them, no answer could match to the
// letter. The paper's prompt was not published.
std::string StreamArcPrompt(const Question& question);

// questions: of arc_easy or arc_challenge (ReadQuestions). Throws Error(kInput) before any work if
// the stream does not fit into the session's context; otherwise as Stream does.
StreamArcResult MeasureStreamArc(const Reader& reader, const StreamCoder& coder,
                                 std::span<const Question> questions,
                                 const StreamArcOptions& options);

}  // namespace godwit::eval
