// A cache as after a long prompt, without reading one. Attention over a prompt costs the square of
// its length. The cost of a token at that depth does not depend on how the cache came about.
//
// The rows are the model's own: keys and values of a short real prompt, drawn again and again in a
// pseudo-random order. They have the model's distribution, layer by layer, and scores are neither
// all alike nor all in one place. Texts see ordinary steps without queries: positions, dropped
// tokens and statistics are those of a real prompt.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/core/text_cache.h"
#include "model/decoder.h"
#include "ops/exec.h"

namespace godwit::bench {

// Keys (before position encoding) and values of every layer for a few tokens.
class KvSample {
 public:
  // Reads `tokens` with the model, all in one step.
  KvSample(const Decoder& model, const Exec& exec, std::span<const int32_t> tokens);

  // Lets the text grow to `length` tokens, in steps of at most chunk_tokens. Another `draw` gives a
  // text the rows in another order.
  void Extend(TextCache& text, const Exec& exec, int64_t length, int64_t chunk_tokens,
              uint32_t draw = 0) const;

 private:
  int64_t cols_ = 0;  // kv_heads * head_dim
  int64_t rows_ = 0;
  std::vector<std::vector<float>> k_, v_;  // [layers] of [rows, cols]; v_: or of none, if in keys
  // Keys of the model's own index [layers] of [rows, index_cols], or of none.
  int64_t index_cols_ = 0;
  std::vector<std::vector<float>> index_;
};

}  // namespace godwit::bench
