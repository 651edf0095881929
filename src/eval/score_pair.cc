#include "eval/score_pair.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "eval/log_probability.h"

namespace godwit::eval {

Score ScorePair(const Reader& reader, const EncodedPair& pair, int64_t query_tokens) {
  Score score;
  reader.logits(
      std::span(pair.tokens).first(pair.tokens.size() - 1),
      [&](int64_t position, std::span<const float> logits) {
        if (position < pair.context_tokens - 1) return;
        const int32_t next = pair.tokens[static_cast<size_t>(position) + 1];
        const double log_probability = LogProbability(logits, next);
        if (std::isnan(log_probability)) {
          Throw(ErrorKind::kFormat, "the model's logits after {} tokens are not numbers",
                position + 1);
        }
        score.log_probability += log_probability;
        score.greedy &= MostProbable(logits) == next;
      },
      std::max<int64_t>(0, pair.context_tokens - query_tokens), nullptr);
  return score;
}

}  // namespace godwit::eval
