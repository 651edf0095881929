// Products of queries with tiles of keys, as they are stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/exec.h"
#include "ops/kv_view.h"
#include "tensor/view.h"

namespace godwit::ops {

// Products of queries with tiles of keys as packed weights of kTileTokens outputs (packing.h).
// Queries are rounded to bf16 where keys are bf16. For int8 keys a query has two int8 parts: the
// second holds the remainder of the first. A product depends on its query and its key alone. Lives
// as long as the memory that it takes of the workspace; kv and q outlive it.
class KeyProduct {
 public:
  // q [rows, head_dim], rotated at their positions.
  KeyProduct(const Exec& exec, const KvView& kv, MatrixView<const float> q);

  // Floats of scratch memory for this many queries.
  static int64_t ScratchFloats(const KvView& kv, int64_t head_dim, int64_t rows);

  // Computes scores [rows, kTileTokens] with `stride`: queries [first, first + rows) by a tile of a
  // head's keys.
  void Score(int64_t first, int64_t rows, int64_t head, int64_t tile, float* scratch, float* scores,
             int64_t stride) const;

 private:
  template <class T>
  void Take(MatrixView<T> rows);

  const kernels::KernelTable& kernels_;
  const KvView& kv_;
  MatrixView<const float> q_;
  int64_t head_dim_;
  int64_t parts_;  // of a query
  const std::byte* rows_ = nullptr;
  int64_t stride_ = 0;
  int64_t row_bytes_ = 0;
  float* scales_ = nullptr;
  int32_t* sums_ = nullptr;
};

}  // namespace godwit::ops
