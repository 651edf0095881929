#include "cuda/ops/store_keys.h"

#include <cassert>

#include "base/error.h"
#include "cuda/kernels/store_rows.h"

namespace godwit::cuda {

void StoreKeyRows(const Stream& stream, DeviceMatrix<const float> k, DeviceMatrix<const float> v,
                  int64_t position, const DeviceTarget& to, int32_t* out_of_range) {
  if (to.dtype != DType::kF32 && to.dtype != DType::kF16 && to.dtype != DType::kBF16) {
    Throw(ErrorKind::kUnsupported, "a GPU stores keys in F32, F16 or BF16, found {}",
          Name(to.dtype));
  }
  assert(v.cols % k.cols == 0 && k.rows == v.cols / k.cols * v.rows);
  stream.Launch<StoreRows>({.x = v.rows, .y = v.cols / k.cols}, {.k = k.data,
                                                                 .k_stride = k.stride,
                                                                 .v = v.data,
                                                                 .v_stride = v.stride,
                                                                 .tokens = v.rows,
                                                                 .position = position,
                                                                 .pages = to.pages,
                                                                 .head_bytes = to.head_bytes,
                                                                 .value_offset = to.value_offset,
                                                                 .dtype = to.dtype,
                                                                 .head_dim = k.cols,
                                                                 .out_of_range = out_of_range});
}

}  // namespace godwit::cuda
