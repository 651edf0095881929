// Cached keys and values of every layer and KV head: storage, without an opinion on who sees what.
//
// Pages of kernels::kTileTokens positions each. A page holds, for every layer and KV head, the keys
// transposed [head_dim, kTileTokens] and the values [kTileTokens, padded head_dim], as the
// attention kernels read them, and of int8 the scales of the keys and of the values, [kTileTokens]
// f32 each. A row is rounded or quantized once, on its own, when it is written: what is cached does
// not depend on what came with it. Position p lies in page (p / kTileTokens) modulo pages().
// Growing never moves what is stored. Unwritten positions hold zeros or what was there before. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "attention/geometry.h"
#include "kernels/kernel_table.h"
#include "ops/exec.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace godwit {

// What keys and values can be stored as, as --kv-type spells it.
struct KvType {
  std::string_view name;
  DType dtype;
};
inline constexpr KvType kKvTypes[] = {
    {"f32", DType::kF32}, {"f16", DType::kF16}, {"bf16", DType::kBF16}, {"int8", DType::kI8}};

class KvStore {
 public:
  // dtype: one of kKvTypes.
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
  // v [tokens, kv_heads * head_dim]. Throws Error(kUnsupported) for a number beyond the range of
  // f16, where that is the dtype; what is not finite already stays so.
  void Write(const Exec& exec, int64_t layer, int64_t first, MatrixView<const float> k,
             MatrixView<const float> v);

  ops::KvView View(int64_t layer) const;

 private:
  int64_t head_bytes() const { return key_bytes_ + value_bytes_ + scale_bytes_; }
  void WriteHead(const Exec& exec, int64_t layer, int64_t head, int64_t first,
                 MatrixView<const float> k, MatrixView<const float> v);

  ops::AttentionShape shape_;
  DType dtype_;
  int64_t key_bytes_;    // of one tile of one head
  int64_t value_bytes_;  // likewise
  int64_t scale_bytes_;  // likewise, of keys and values; 0 but for int8
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
