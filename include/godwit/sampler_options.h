// SamplerOptions: everything that decides how a token is chosen from logits.
//
// Plain data with llama.cpp's names and defaults. The steps run in the order of the fields below:
// bias, penalties, temperature, top-k, top-p, min-p, eta, draw; each filter sees what the one
// before it left, renormalised.
#pragma once

#include <cstdint>
#include <map>

namespace godwit {

struct SamplerOptions {
  std::map<int32_t, float> logit_bias;  // token -> added to its logit; -inf bans the token

  // Penalties look at the last repeat_last_n tokens of the text (0: none, -1: all of it).
  int repeat_last_n = 64;
  float repeat_penalty = 1.0f;     // positive logits divided, negative multiplied; 1: off
  float presence_penalty = 0.0f;   // subtracted once from each token that occurs
  float frequency_penalty = 0.0f;  // subtracted once per occurrence

  float temperature = 0.8f;  // 0: greedy, the filters and the seed have no say
  int top_k = 40;            // the k likeliest; 0: off
  float top_p = 0.95f;       // the fewest tokens that hold this share of probability; 1: off
  float min_p = 0.05f;       // at least this fraction of the likeliest token's probability; 0: off
  float eta = 0.0f;          // epsilon of eta sampling; 0: off

  uint64_t seed = 0;
};

}  // namespace godwit
