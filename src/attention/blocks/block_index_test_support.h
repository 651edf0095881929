// Shared parts of the tests of blocks: caches of random keys, and representatives as an index holds
// them. Only *_test.cc files include it.
#pragma once

#include <vector>

#include "attention/blocks/block_index.h"
#include "base/rng.h"
#include "kernels/dispatch.h"
#include "kv/kv_cache.h"
#include "ops/store_row.h"

namespace godwit {

// The key that the text `seed` has there, in [-1, 1).
inline float RandomKey(uint64_t seed, int64_t layer, int64_t head, int64_t position, int64_t d) {
  const auto sequence = static_cast<uint64_t>((layer * 64 + head) * 1024 + d);
  return static_cast<float>(2 * Uniform(seed, sequence, position, 0) - 1);
}

// key_of(layer, head, position, d)
template <typename KeyOf>
void ReadKeysOf(KvCache& cache, int64_t tokens, const KeyOf& key_of) {
  static const kernels::KernelTable& kernels = *kernels::SelectIsa("").table;
  const KvLayout& layout = cache.layout();
  cache.Reserve(tokens);
  std::vector<float> key(layout.head_dim);
  for (int64_t p = cache.length(); p < cache.length() + tokens; ++p) {
    for (int64_t layer = 0; layer < layout.layers; ++layer) {
      for (int64_t head = 0; head < layout.kv_heads; ++head) {
        for (int64_t d = 0; d < layout.head_dim; ++d) {
          key[d] = key_of(layer, head, p, d);
        }
        ops::StoreRow(kernels, layout, cache.View(layer), layer, head, p, key.data(), key.data());
      }
    }
  }
  cache.Append(tokens);
}

inline void ReadRandomKeys(KvCache& cache, int64_t tokens, uint64_t seed) {
  ReadKeysOf(cache, tokens, [&](int64_t layer, int64_t head, int64_t position, int64_t d) {
    return RandomKey(seed, layer, head, position, d);
  });
}

// A part's representative, with the numbers behind its end up to kQuad.
struct PartVector {
  std::vector<int> integers;
  float scale;
};

inline PartVector VectorAt(const ops::IndexPages& index, int64_t head, int64_t part) {
  const ops::RepresentativeTile tile = index.Vectors(head, part / kernels::kTileTokens);
  const int64_t slot = part % kernels::kTileTokens;
  PartVector vector{.integers = {}, .scale = tile.scales[slot]};
  const int64_t end = (index.width + kernels::kQuad - 1) / kernels::kQuad * kernels::kQuad;
  for (int64_t d = 0; d < end; ++d) {
    vector.integers.push_back(tile.vectors[kernels::KeyAt(kernels::kQuad, d, slot)] - 128);
  }
  return vector;
}

}  // namespace godwit
