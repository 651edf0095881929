// One step of many texts: the rows that their strategies propose go through the model together, so
// its weights are read once for all of them.
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
  int64_t max_tokens = 1;  // that it may bring
  // Both may be null. One sees the states [rows, hidden] of all its rows, before the final norm and
  // before the strategy does; the other is Outcome::on_choice.
  const std::function<void(MatrixView<const float> states)>* on_states = nullptr;
  const std::function<void(std::span<const float> logits)>* on_choice = nullptr;

  // What came of it: the accepted tokens (Strategy::Accept), or what Accept threw.
  std::span<const int32_t> accepted = {};
  std::exception_ptr error = nullptr;

  int64_t rows = 0;        // that it brought
  int64_t logit_rows = 0;  // the last of them
};

// now_ms: by which what it takes is measured. Throws what the model throws, kCancelled included,
// with all texts as they were. What goes wrong with one text after that is its own error. Allocates
// nothing once the workspace has grown.
void StepTogether(const LanguageModel& model, const Exec& exec, std::span<Participant> participants,
                  NowMs now_ms = SteadyMs);

}  // namespace godwit
