#include "eval/stream_arc.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/split_text.h"
#include "base/stopwatch.h"

namespace godwit::eval {
namespace {

constexpr std::string_view kAnswer = "Answer:";

std::string Gold(const Question& question) {
  return std::string(Stripped(question.choices[question.gold].answer));
}

}  // namespace

std::string StreamArcPrompt(const Question& question) {
  // The beginning of all choices: "Question: What is ice?\nAnswer:".
  std::string prompt = question.choices.front().context;
  prompt.resize(prompt.size() - kAnswer.size());
  for (const Choice& choice : question.choices) {
    prompt += fmt::format("- {}\n", Stripped(choice.answer));
  }
  return prompt.append(kAnswer);
}

StreamArcResult MeasureStreamArc(const Reader& reader, const StreamCoder& coder,
                                 std::span<const Question> questions,
                                 const StreamArcOptions& options) {
  const Stopwatch watch;
  if (options.stream.max_new_tokens < 1) {
    Throw(ErrorKind::kInput, "answers of {} tokens: expected at least 1",
          options.stream.max_new_tokens);
  }
  std::vector<std::vector<int32_t>> prompts;
  int64_t total_tokens = std::ssize(coder.frame);
  int64_t answer_tokens = 0;
  for (const Question& question : questions) {
    const std::string prompt = StreamArcPrompt(question);
    prompts.push_back(prompts.empty() ? coder.encode(prompt) : EncodeInside(coder.encode, prompt));
    total_tokens += std::ssize(prompts.back());
    // The newline, and the pieces of the answer's last token.
    constexpr int64_t kEnd = 4;
    answer_tokens +=
        kEnd + std::max(options.stream.max_new_tokens,
                        std::ssize(EncodeInside(coder.encode, fmt::format(" {}", Gold(question)))));
  }
  CheckStreamFits(reader, total_tokens + answer_tokens);

  StreamArcResult result;
  Stream stream(reader, coder, options.stream);
  int64_t written = stream.tokens();
  for (size_t row = 0; row < questions.size(); ++row) {
    stream.Append(prompts[row]);
    written += std::ssize(prompts[row]);
    StreamAnswer answer;
    answer.row = static_cast<int64_t>(row);
    answer.position = stream.tokens() - 1;
    answer.fingerprint = stream.fingerprint();
    answer.expected = Gold(questions[row]);
    if (options.recall && options.recall(answer)) {
      stream.Recall(answer.fed);
      answer.known = true;
    } else {
      const std::string said =
          stream.Ask(fmt::format(" {}", answer.expected), [&](int64_t pending) {
            if (options.on_progress)
              options.on_progress(std::max<int64_t>(0, written - pending), total_tokens);
          });
      answer.answer = std::string(Stripped(said));
      answer.fed.assign(stream.fed().begin(), stream.fed().end());
      answer.right = answer.answer == answer.expected;
    }
    ++result.questions;
    if (answer.right) ++result.right;
    if (options.on_answer) options.on_answer(answer);
  }
  result.tokens = stream.tokens();
  result.kv = reader.kv();
  result.elapsed_ms = watch.ms();
  return result;
}

}  // namespace godwit::eval
