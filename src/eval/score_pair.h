// How probable a model finds a continuation.
#pragma once

#include "eval/encode_pair.h"
#include "godwit/engine.h"

namespace godwit::eval {

struct Score {
  double log_probability = 0;  // natural, the sum over the continuation's tokens
  bool greedy = true;          // each of them is the model's first choice
};

// Reads what the session has not read of the pair's context, and computes the logits of the
// continuation only. Throws as Session::Logits does, and Error(kFormat) if logits are not numbers.
Score ScorePair(Session& session, const EncodedPair& pair);

}  // namespace godwit::eval
