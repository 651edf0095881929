#include "generate/model_drafts.h"

namespace godwit {

double ModelDrafts::EndStep(const LanguageModel& /*model*/, const Exec& exec) {
  if (!read_.IsBehind()) return 0;
  const double since = now_ms();
  try {
    read_.ReadChunk(exec);
  } catch (const Error& error) {
    OnError(error);
  }
  return now_ms() - since;
}

void ModelDrafts::Draft(const Sequence& sequence, const Outcome& outcome, int64_t /*row*/,
                        int64_t most, Add add) {
  Exec exec = *outcome.exec;
  exec.cancel = outcome.cancel;
  read_.Draw(sequence, exec, outcome.model->vocab_size(), most, add);
}

}  // namespace godwit
