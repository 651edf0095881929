// How likely the model holds one token to be the next.
#pragma once

#include <cstdint>
#include <span>

namespace godwit::eval {

// The logarithm of softmax(logits)[token], in nats; -inf for a token that cannot come. One pass for
// the maximum and one for the sum, both in double: a vocabulary of 256K terms and a text of
// millions of tokens add up without a loss that anyone could see. NaN if a logit is NaN.
//
// logits: [vocab] f32, with `token` inside it.
double LogProbability(std::span<const float> logits, int32_t token);

}  // namespace godwit::eval
