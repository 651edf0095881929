// The mean key and the mean value of every block of a text, for every KV head: what stands for a
// block of which a token reads nothing. A block's are a function of its keys and values alone, made
// when somebody asks for them.
//
// They lie as keys and values of a cache do, one position for each block, in pages of its size:
// forks share them, and attention reads them as it reads keys. Not thread-safe.
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
  // block_tokens: of a block, whole tiles. layers: those that have means. The others take their
  // share of memory, too, which is little.
  BlockMeans(std::shared_ptr<KvPool> pool, int64_t block_tokens, std::vector<int64_t> layers);
  // Of a text that goes on from the same tokens.
  BlockMeans(const BlockMeans& other);
  BlockMeans& operator=(const BlockMeans&) = delete;

  int64_t bytes() const { return means_.bytes(); }
  // Blocks of a layer that need not be made again.
  int64_t filled(int64_t layer) const { return filled_[static_cast<size_t>(layer)]; }
  ops::KvView View(int64_t layer) const { return means_.View(layer); }

  // As BlockIndex has them: forgets the blocks from there on; makes room for so many, or throws
  // Error(kMemory) with everything as it was; and makes what is missing of the first `blocks` of a
  // layer, of which those from `lasting` on do not belong to the text yet, on all cores.
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
