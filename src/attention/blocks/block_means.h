// BlockMeans: the mean key and the mean value of every block of a text, for every KV head. They
// stand for a block of which a token reads nothing. A block's means are a function of its keys and
// values alone, computed on demand.
//
// They lie as keys and values of a cache do, one position for each block, in pages of its size.
// Forks share them, and attention reads them as it reads keys. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kv/kv_cache.h"
#include "ops/attention.h"
#include "ops/exec.h"

namespace godwit {

class BlockMeans {
 public:
  // block_tokens: tokens of a block, whole tiles. layers: the layers that have means. Other layers
  // take their share of memory, too, which is little.
  BlockMeans(std::shared_ptr<KvPool> pool, int64_t block_tokens, std::vector<int64_t> layers);
  // Copies the means for a text that goes on from the same tokens.
  BlockMeans(const BlockMeans& other);
  BlockMeans& operator=(const BlockMeans&) = delete;

  int64_t bytes() const { return means_.bytes(); }
  // Blocks of a layer that need not be made again.
  int64_t filled(int64_t layer) const { return filled_[layer]; }
  ops::KvView View(int64_t layer) const { return means_.View(layer); }

  // Work as the functions of BlockIndex. Truncate forgets the blocks from `blocks` on. Reserve
  // takes memory for so many blocks, or throws Error(kMemory) with everything as it was. Fill
  // computes the missing ones of the first `blocks` of a layer, on all cores. Blocks from `lasting`
  // on do not belong to the text yet.
  void Truncate(int64_t blocks);
  void Reserve(int64_t blocks);
  void Fill(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t blocks,
            int64_t lasting);

 private:
  int64_t block_tokens_;
  std::vector<int64_t> layers_;
  std::vector<int64_t> filled_;  // [all layers]
  KvCache means_;                // as long as all of layers_ are filled
};

}  // namespace godwit
