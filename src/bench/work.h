// The multiplications of a step, counted from the model's description. bench compares measured
// times with them.
#pragma once

#include <cstdint>

#include "model/spec.h"

namespace godwit::bench {

// The weights of matrices that every token meets, in all layers. Norms do not count, nor does the
// embedding: a token reads one row of it.
int64_t LayerWeights(const DecoderSpec& spec);
// The weights of the output head, which only the last token of a prompt meets.
int64_t HeadWeights(const DecoderSpec& spec);

// Multiply-adds of `tokens` tokens read together, of which `logit_rows` meet the output head. They
// are those of the matrices, and of attention: products of head_dim and of value_dim for every
// query head and key that it meets (KvStats::met_keys).
int64_t MultiplyAdds(const DecoderSpec& spec, int64_t tokens, int64_t logit_rows, int64_t met_keys);

}  // namespace godwit::bench
