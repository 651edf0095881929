#include "cli/terminal/generate.h"

#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/quiet_input.h"

namespace godwit::cli {

GenerateResult GenerateAtTerminal(Session& session, std::span<const int32_t> prompt,
                                  GenerateOptions options, int presses_to_exit) {
  ProgressLine progress("reading the prompt", ProgressUnit::kTokens);
  options.on_progress = [&](const PromptProgress& p) {
    progress.Update(p.done_tokens, p.total_tokens, p.cached_tokens);
    // Not with the first text: there may be none for long, with --json until the end.
    if (p.done_tokens >= p.total_tokens) progress.Finish();
  };
  const QuietInput quiet;
  const CancelOnInterrupt cancel(session, presses_to_exit);
  return session.Generate(prompt, options);
}

}  // namespace godwit::cli
