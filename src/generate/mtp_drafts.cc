#include "generate/mtp_drafts.h"

#include <algorithm>
#include <optional>

namespace godwit {

// The likeliest token is drafted, however the text chooses: it is the model's choice most often.
void MtpDrafts::Draft(const Sequence& sequence, const Outcome& outcome, int64_t row, int64_t most,
                      Add add) {
  Exec exec = *outcome.exec;
  exec.cancel = outcome.cancel;
  outcome.model->Predict(
      exec, *sequence.cache, sequence.tokens.back(), outcome.hidden.RowSpan(row), most,
      [&](std::span<const float> logits) -> std::optional<int32_t> {
        const auto token = static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
        return add(token, logits) ? std::optional(token) : std::nullopt;
      });
}

}  // namespace godwit
