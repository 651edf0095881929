// One matrix product by oneDNN, the yardstick of our own: the same numbers in and out.
#pragma once

#include <cstdint>
#include <memory>

#include "tensor/dtype.h"

namespace godwit::bench {

// y [rows, outputs] = x [rows, inputs] * w^T, w [outputs, inputs] in whatever order oneDNN likes
// best, packed once. f32: all of f32; bf16: x and w, y in f32; int8: x unsigned, w signed, y in
// int32. On one thread.
class OneDnnMatmul {
 public:
  // Throws dnnl::error where oneDNN has no such product on this machine.
  OneDnnMatmul(DType dtype, int64_t rows, int64_t inputs, int64_t outputs);
  ~OneDnnMatmul();
  OneDnnMatmul(const OneDnnMatmul&) = delete;
  OneDnnMatmul& operator=(const OneDnnMatmul&) = delete;

  void Run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// "v2.6.3"
const char* OneDnnVersion();

}  // namespace godwit::bench
