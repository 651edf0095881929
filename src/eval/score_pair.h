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
// continuation only. query_tokens: the last so many of the context are the question, where
// SessionOptions::prefill says how the rest is read. Throws as Session::Logits does, and
// Error(kFormat) if logits are not numbers.
Score ScorePair(Session& session, const EncodedPair& pair, int64_t query_tokens = 1);

}  // namespace godwit::eval
