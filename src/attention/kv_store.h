// Cached keys and values of every layer and KV head: storage, without an opinion on who sees what.
//
// Pages of kernels::kTileTokens positions each. A page holds, for every layer and KV head, the keys
// transposed [head_dim, kTileTokens] and the values [kTileTokens, padded head_dim], as the
// attention kernels read them. Position p lies in page (p / kTileTokens) modulo pages(). Growing
// never moves what is stored. Unwritten positions hold zeros or what was there before. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/geometry.h"
#include "kernels/kernel_table.h"
#include "ops/exec.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace godwit {

class KvStore {
 public:
  // dtype: F32, F16 or BF16.
  KvStore(const AttentionGeometry& geometry, DType dtype);

  // Grows to at least this many pages. Throws Error(kMemory) with everything as it was.
  void Reserve(int64_t pages);
  void Shrink(int64_t pages);

  // Makes room to list this many pages, so that growing up to there takes pages from the system
  // and nothing from the heap.
  void ReserveTable(int64_t pages);

  int64_t pages() const { return static_cast<int64_t>(pages_.size()); }
  int64_t page_bytes() const { return page_bytes_; }
  int64_t bytes() const { return pages() * page_bytes_; }

  // Stores the rows of one layer at positions first, first + 1, ...
  // k [kv_heads * tokens, head_dim], position-encoded, head-major (row = head * tokens + token);
  // v [tokens, kv_heads * head_dim].
  void Write(const Exec& exec, int64_t layer, int64_t first, MatrixView<const float> k,
             MatrixView<const float> v);

  ops::KvView View(int64_t layer) const;

 private:
  void WriteHead(const Exec& exec, int64_t layer, int64_t head, int64_t first,
                 MatrixView<const float> k, MatrixView<const float> v);

  ops::AttentionShape shape_;
  DType dtype_;
  int64_t key_bytes_;    // of one tile of one head
  int64_t value_bytes_;  // likewise
  int64_t page_bytes_;
  std::vector<Buffer> pages_;
  std::vector<const std::byte*> page_data_;  // pages_[i].data()
};

// Pages that `tokens` neighbouring positions from a page's start take.
constexpr int64_t PagesFor(int64_t tokens) {
  return (tokens + kernels::kTileTokens - 1) / kernels::kTileTokens;
}

// Bytes that one cached token takes in all layers.
int64_t KvBytesPerToken(const AttentionGeometry& geometry, DType dtype);

}  // namespace godwit
