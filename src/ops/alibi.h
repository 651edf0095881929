// ALiBi (arXiv 2108.12409): positions enter as a bias on every score, slope * (key position - query
// position). It is a penalty for distance that every head charges at its own rate.
//
// Positions are counted in the cache: positions that a policy has evicted leave no gap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace godwit::ops {

struct Alibi {
  std::vector<float> slopes;  // [heads], per token; empty: the model has no ALiBi
  float scale = 1;  // a factor on every bias: Falcon adds it to scores that are yet to be scaled
  // Whether every key's bias is bf16(bf16(slope) * bf16(position)). It is a staircase whose steps
  // are two tokens wide from position 256 on and eight from 1024 on. Falcon was published so, and
  // Hugging Face computes it so in float32 too.
  bool in_bf16 = false;
};

// The position of a query in the cache, and those of the keys of one source.
struct AlibiPlace {
  int64_t query;
  int64_t shift;  // the key at the source's position p stands at p + shift
};

// The paper's slopes: 2^(-8 i / n) for i = 1 .. n where the n heads are a power of two; else those
// of the power below, and then every other one of the power above.
std::vector<float> AlibiSlopes(int64_t heads);

// Fills bias[j], that of the key at position first + j of its source; 0 without ALiBi. It is
// relative to the query's own. Softmax does not notice that, and it keeps near keys exact in a text
// of any length.
void FillAlibi(const Alibi& alibi, int64_t head, const AlibiPlace& place, int64_t first,
               std::span<float> bias);

}  // namespace godwit::ops
