// What the logits say about the next token.
#pragma once

#include <cstdint>
#include <span>

namespace godwit::eval {

// How likely a token is: the logarithm of softmax(logits)[token], in nats; -inf for a token that
// cannot come. One pass for the maximum and one for the sum, both in double: a vocabulary of 256K
// terms and a text of millions of tokens add up without a loss that anyone could see. NaN if a
// logit is NaN.
//
// logits: [vocab] f32, with `token` inside it.
double LogProbability(std::span<const float> logits, int32_t token);

// The first of the largest logits [vocab].
int32_t MostProbable(std::span<const float> logits);

// The Kullback-Leibler divergence D(p || q) of softmax(q_logits) from softmax(p_logits), in nats:
// what it costs to believe q where p is true. 0 where they are the same; inf where q excludes a
// token that p does not. NaN if a logit is NaN. Both [vocab] f32.
double KlDivergence(std::span<const float> p_logits, std::span<const float> q_logits);

}  // namespace godwit::eval
