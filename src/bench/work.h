// What a step must multiply, counted from the model's description: what bench holds measured times
// against.
#pragma once

#include <cstdint>

#include "model/spec.h"

namespace godwit::bench {

// Weights of the matrices that every token meets, in all layers. No norms, no embedding: a token
// reads one row of that.
int64_t LayerWeights(const DecoderSpec& spec);
// Of the output head, which only the last token of a prompt meets.
int64_t HeadWeights(const DecoderSpec& spec);

// Multiply-adds of `tokens` tokens read together, of which `logit_rows` meet the output head:
// matrices, and a product of head_dim and one of value_dim for every query head and key that it
// meets (KvStats::met_keys).
int64_t MultiplyAdds(const DecoderSpec& spec, int64_t tokens, int64_t logit_rows, int64_t met_keys);

}  // namespace godwit::bench
