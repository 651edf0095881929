// Scratch memory of one step: matrices handed out from one block and taken back together.
//
// The block grows until the largest step is known and is kept after that, so a steady decode loop
// allocates nothing. The first step of a model holds no more than a later one: a layer gives its
// memory back before the next takes some. Not thread-safe: take memory before the work is split. A
// view is valid until the Scope in which it was taken ends.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/buffer.h"
#include "tensor/view.h"

namespace godwit {

class Workspace {
 public:
  // Gives back, on destruction, everything that was taken since its construction.
  class Scope {
   public:
    explicit Scope(Workspace& workspace) : workspace_(workspace), mark_(workspace.used_) {}
    ~Scope() { workspace_.Release(mark_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Workspace& workspace_;
    int64_t mark_;
  };

  // Uninitialised, rows 64-byte aligned; of elements larger than that, only the first row. Throws
  // Error(kMemory).
  template <typename T>
  MatrixView<T> Matrix(int64_t rows, int64_t cols) {
    constexpr auto kPerLine = static_cast<int64_t>(sizeof(T) < 64 ? 64 / sizeof(T) : 1);
    const int64_t stride = (cols + kPerLine - 1) / kPerLine * kPerLine;
    const auto bytes = rows * stride * static_cast<int64_t>(sizeof(T));
    return {reinterpret_cast<T*>(Take(bytes)), rows, cols, stride};
  }

  int64_t capacity_bytes() const { return block_.bytes(); }
  // The block, and what did not fit into it.
  int64_t held_bytes() const;

 private:
  struct Overflow {
    int64_t begin;  // of used_
    Buffer memory;
  };

  std::byte* Take(int64_t bytes);
  void Release(int64_t mark) noexcept;

  Buffer block_;
  int64_t used_ = 0;                // bytes taken, in the block and beyond it
  int64_t peak_ = 0;                // the most that was ever taken
  std::vector<Overflow> overflow_;  // what did not fit, until it is given back
};

}  // namespace godwit
