// Drive: continues a text with a strategy as StepTogether does. A test sets the time of a step by
// its rows, so that the strategy decides the same on every machine.
#pragma once

#include <functional>
#include <vector>

#include "generate/strategy.h"
#include "model/language_model.h"
#include "ops/exec.h"

namespace godwit {

// A clock for Speculative, by which drafting takes no time.
inline double NoTime() { return 0; }

struct Drive {
  const LanguageModel& model;
  Exec exec;
  std::function<double(int64_t rows)> ms = [](int64_t) { return 1.0; };
  int64_t chunk = 16;
  int64_t steps = 0, rows = 0;  // of steps that continued the text

  // Steps until `tokens` or more have been accepted.
  void Continue(Sequence& sequence, Strategy& strategy, int64_t tokens) {
    const auto end = std::ssize(sequence.tokens) + tokens;
    while (std::ssize(sequence.tokens) < end) Step(sequence, strategy);
  }

  void Step(Sequence& sequence, Strategy& strategy) {
    Workspace::Scope scope(exec.workspace);
    const bool continues = sequence.pending() == 1;
    const Proposal proposal =
        strategy.Propose(sequence, continues ? std::max(chunk, strategy.MaxRows()) : chunk);
    const int64_t n = std::ssize(proposal.segment.tokens), wanted = proposal.logit_rows;
    const auto hidden = exec.workspace.Matrix<float>(n, model.hidden_size());
    model.Forward(exec, {&proposal.segment, 1}, hidden);
    const auto states = hidden.Rows(n - wanted, n);
    const auto logits = exec.workspace.Matrix<float>(wanted, model.vocab_size());
    if (wanted > 0) model.Logits(exec, states, logits);
    strategy.Accept(sequence, {.hidden = states,
                               .logits = logits,
                               .step_rows = n,
                               .step_ms = ms(n),
                               .model = &model,
                               .exec = &exec});
    strategy.EndStep(model, exec);
    steps += continues ? 1 : 0;
    rows += continues ? n : 0;
  }
};

}  // namespace godwit
