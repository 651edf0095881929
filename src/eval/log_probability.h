// Probabilities of the next token by the logits.
#pragma once

#include <cstdint>
#include <span>

namespace godwit::eval {

// The logarithm of softmax(logits)[token], in nats; -inf for a token that cannot come; NaN if a
// logit is NaN. One pass finds the maximum and one the sum, both in double. Vocabularies of 256K
// terms and texts of millions of tokens then add up without a visible loss.
//
// logits: [vocab] f32, with `token` inside it.
double LogProbability(std::span<const float> logits, int32_t token);

// The first of the largest logits [vocab].
int32_t MostProbable(std::span<const float> logits);

// The Kullback-Leibler divergence D(p || q) of softmax(q_logits) from softmax(p_logits), in nats:
// the cost of believing q where p is true. 0 where they are the same; inf where q excludes a token
// that p does not. NaN if a logit is NaN. Both [vocab] f32.
double KlDivergence(std::span<const float> p_logits, std::span<const float> q_logits);

}  // namespace godwit::eval
