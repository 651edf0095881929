// The probability that a model gives a continuation.
#pragma once

#include "eval/encode_pair.h"
#include "eval/reader.h"

namespace godwit::eval {

struct Score {
  double log_probability = 0;  // natural; the sum over the continuation's tokens
  bool greedy = true;          // each token is the model's first choice
};

// Reads the part of the pair's context that a session has not read, and computes the logits of
// the continuation only. query_tokens: the tokens at the end of the context that are the question,
// where SessionOptions::prefill says how the rest is read. Throws as Session::Logits does, and
// Error(kFormat) if logits are not numbers.
Score ScorePair(const Reader& reader, const EncodedPair& pair, int64_t query_tokens = 1);

}  // namespace godwit::eval
