#include "eval/evaluate.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace godwit::eval {
namespace {

// The number of tokens that Session::Logits reads of `pair` after `before`.
int64_t NewTokens(const EncodedPair& pair, const EncodedPair& before) {
  const auto differ = std::mismatch(pair.tokens.begin(), pair.tokens.end() - 1,
                                    before.tokens.begin(), before.tokens.end() - 1);
  return pair.read_tokens() -
         std::min<int64_t>(differ.first - pair.tokens.begin(), pair.context_tokens - 1);
}

EncodedQuestion EncodeQuestion(Question question, const Encoder& encode) {
  EncodedQuestion encoded{.question = std::move(question)};
  try {
    for (const Choice& choice : encoded.question.choices) {
      auto& pairs = encoded.choices;
      pairs.push_back(EncodePair(encode, choice.context, " " + choice.answer));
      encoded.read_tokens +=
          pairs.size() == 1 ? pairs[0].read_tokens() : NewTokens(pairs.back(), *(pairs.end() - 2));
    }
  } catch (const Error& error) {
    Throw(error.kind(), "{}: {}", encoded.question.where, error.what());
  }
  return encoded;
}

}  // namespace

EncodedTask EncodeTask(const Task& task, std::vector<Question> questions, const Encoder& encode,
                       int64_t limit_tokens) {
  EncodedTask encoded{.task = &task};
  for (int64_t row = 0; row < std::ssize(questions); ++row) {
    EncodedQuestion next = EncodeQuestion(std::move(questions[row]), encode);
    next.row = row;
    const bool fits =
        std::all_of(next.choices.begin(), next.choices.end(),
                    [&](const EncodedPair& pair) { return pair.read_tokens() <= limit_tokens; });
    if (!fits) {
      ++encoded.skipped;
      continue;
    }
    encoded.read_tokens += next.read_tokens;
    encoded.questions.push_back(std::move(next));
  }
  return encoded;
}

std::vector<Score> ScoreQuestion(const Reader& reader, const EncodedQuestion& question,
                                 int64_t query_tokens, const std::function<void()>& on_choice) {
  std::vector<Score> scores;
  for (const EncodedPair& pair : question.choices) {
    scores.push_back(ScorePair(reader, pair, query_tokens));
    on_choice();
  }
  return scores;
}

TaskMetrics EvaluateTask(const Reader& reader, const EncodedTask& task,
                         const std::function<void(int64_t done_tokens)>& on_progress) {
  TaskMetrics metrics(task.task->scoring);
  int64_t done_tokens = 0;
  for (const EncodedQuestion& question : task.questions) {
    metrics.Add(question.question, ScoreQuestion(reader, question, /*query_tokens=*/1,
                                                 [&] { on_progress(done_tokens); }));
    done_tokens += question.read_tokens;
    on_progress(done_tokens);
  }
  return metrics;
}

}  // namespace godwit::eval
