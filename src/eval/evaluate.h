// The evaluation of a task, from its questions to its figures.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "eval/encode_pair.h"
#include "eval/question.h"
#include "eval/reader.h"
#include "eval/task_metrics.h"
#include "eval/tasks.h"

namespace godwit::eval {

struct EncodedQuestion {
  Question question;
  int64_t row = 0;  // among all rows of the task
  std::vector<EncodedPair> choices;
  int64_t read_tokens = 0;  // of all choices; a beginning shared with the one before counts once
};

struct EncodedTask {
  const Task* task = nullptr;
  std::vector<EncodedQuestion> questions;  // questions that fit
  int64_t skipped = 0;                     // questions that do not fit
  int64_t read_tokens = 0;                 // of all questions
};

// limit_tokens: the longest text that the session takes (Session::limit_tokens). A question with a
// longer choice is skipped as a whole: the harness would cut its context from the left, which asks
// something else. Throws Error(kUnsupported) as EncodePair does, naming the row.
EncodedTask EncodeTask(const Task& task, std::vector<Question> questions, const Encoder& encode,
                       int64_t limit_tokens);

// The scores of a question's choices. query_tokens: as ScorePair takes it. on_choice: called after
// each choice.
std::vector<Score> ScoreQuestion(const Reader& reader, const EncodedQuestion& question,
                                 int64_t query_tokens, const std::function<void()>& on_choice);

// Scores all questions. on_progress: called after every choice with the tokens of finished
// questions, out of task.read_tokens.
TaskMetrics EvaluateTask(const Reader& reader, const EncodedTask& task,
                         const std::function<void(int64_t done_tokens)>& on_progress);

}  // namespace godwit::eval
