// One step of many texts: the rows that their strategies propose go through the model together. Its
// weights are thus read once for all of them.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <span>

#include "base/stopwatch.h"
#include "generate/strategy.h"
#include "model/language_model.h"

namespace godwit {

// A text's part in a step.
struct Participant {
  Sequence* sequence;
  Strategy* strategy;
  int64_t max_tokens = 1;  // rows that it may bring
  // Callbacks, or null. on_states sees the states [rows, hidden] of all its rows, before the final
  // norm and before the strategy does. on_choice is Outcome::on_choice.
  const std::function<void(MatrixView<const float> states)>* on_states = nullptr;
  const std::function<void(std::span<const float> logits)>* on_choice = nullptr;

  // The result: the accepted tokens (Strategy::Accept), or the error that Accept threw.
  std::span<const int32_t> accepted = {};
  std::exception_ptr error = nullptr;

  int64_t rows = 0;        // rows that it brought
  int64_t logit_rows = 0;  // number of last rows with logits
};

// Runs the step. now_ms: the clock that measures it. Throws what the model throws, kCancelled
// included, with all texts as they were. A later failure with one text is that text's own error.
// Allocates nothing once the workspace has grown.
void StepTogether(const LanguageModel& model, const Exec& exec, std::span<Participant> participants,
                  NowMs now_ms = SteadyMs);

}  // namespace godwit
