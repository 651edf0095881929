#include "cli/generate.h"

#include "base/cancel.h"
#include "chat/answers.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/progress_line.h"
#include "console/terminal/quiet_input.h"

namespace godwit::cli {

namespace {

void Show(const PromptProgress& p, console::ProgressLine& progress) {
  progress.UpdateReading(p.done_tokens, p.total_tokens, p.cached_tokens, p.left_ms);
  // The line ends before the first text, which may take long, with --json until the end.
  if (p.done_tokens >= p.total_tokens) progress.Finish();
}

}  // namespace

GenerateResult GenerateAtTerminal(Session& session, std::span<const int32_t> prompt,
                                  GenerateOptions options, int presses_to_exit) {
  console::ProgressLine progress("reading the prompt", console::ProgressUnit::kTokens);
  progress.UpdateReading(0, std::ssize(prompt), /*cached=*/0, /*left_ms=*/{});
  options.on_progress = [&](const PromptProgress& p) { Show(p, progress); };
  const console::QuietInput quiet;
  const console::CancelOnInterrupt cancel(session, presses_to_exit);
  return session.Generate(prompt, options);
}

PassagesRead ReadPassagesAtTerminal(Session& session, std::span<const int32_t> head,
                                    std::span<const std::vector<int32_t>> passages,
                                    int64_t read_anew, int presses_to_exit) {
  console::ProgressLine progress("reading the passages", console::ProgressUnit::kTokens);
  const console::QuietInput quiet;
  const console::CancelOnInterrupt cancel(session, presses_to_exit);
  return session.ReadPassages(head, passages, read_anew,
                              [&](const PromptProgress& p) { Show(p, progress); });
}

std::vector<GenerateResult> GenerateAnswersAtTerminal(
    const Engine& engine, std::span<const int32_t> prompt, const GenerateOptions& options,
    const SessionOptions& session, int count, int presses_to_exit,
    const std::function<void(int answer, const Event& event)>& on_event,
    const chat::BegunAnswers& begun) {
  console::ProgressLine progress("reading the prompt", console::ProgressUnit::kTokens);
  progress.UpdateReading(0, std::ssize(prompt), /*cached=*/0, /*left_ms=*/{});
  const console::QuietInput quiet;
  CancelToken token;
  const console::CancelOnInterrupt cancel(token, presses_to_exit);
  return chat::GenerateAnswers(
      engine, prompt, options, session, count, &token,
      [&](int answer, const Event& event) {
        if (answer == 0 && event.progress) Show(*event.progress, progress);
        on_event(answer, event);
      },
      begun);
}

}  // namespace godwit::cli
