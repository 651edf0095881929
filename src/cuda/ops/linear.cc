#include "cuda/ops/linear.h"

#include <cassert>

#include "cuda/kernels/product_bf16.h"
#include "cuda/kernels/product_groups.h"
#include "cuda/kernels/product_int8.h"
#include "cuda/kernels/quantize_rows.h"
#include "kernels/packing.h"

namespace godwit::cuda {
namespace {

int64_t Pieces(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }
int64_t UpTo(int64_t n, int64_t unit) { return Pieces(n, unit) * unit; }

// The kernel for so many rows. Both have the same bits.
template <class Few, class Many>
void Launch(const Stream& stream, const typename Few::Args& args) {
  const int64_t panels = kernels::PanelCount(args.columns);
  if (args.rows <= kFewRows) {
    stream.Launch<Few>({.x = panels, .y = Pieces(args.rows, Few::kRows)}, args);
  } else {
    stream.Launch<Many>({.x = Pieces(args.rows, Many::kRows), .y = panels}, args);
  }
}

const uint32_t* Words(const void* numbers) { return static_cast<const uint32_t*>(numbers); }

}  // namespace

void LinearBF16(const Stream& stream, DeviceMatrix<const BF16> x, const DeviceWeight& w,
                DeviceMatrix<float> out) {
  assert(x.cols == w.inputs && x.stride % 2 == 0 && x.stride >= x.cols);
  assert(out.rows == x.rows && out.cols == w.outputs);
  Launch<ProductBF16Few, ProductBF16Many>(stream, {.a = Words(x.data),
                                                   .a_stride = x.stride / 2,
                                                   .w = Words(w.panels),
                                                   .bias = w.bias,
                                                   .out = out.data,
                                                   .out_stride = out.stride,
                                                   .rows = x.rows,
                                                   .k = w.inputs,
                                                   .columns = w.outputs});
}

int64_t IntegerStride(int64_t cols) { return UpTo(cols, kernels::kQuad); }
int64_t IntegerStride(const GroupFormat& format, int64_t cols) {
  return UpTo(cols, BlockInputs(format));
}

void QuantizeForInt8(const Stream& stream, DeviceMatrix<const float> x, const DeviceIntegers& out) {
  assert(x.rows == out.rows && x.cols == out.cols && out.stride % kernels::kQuad == 0);
  stream.Launch<QuantizeRows>({.x = x.rows}, {.x = x.data,
                                              .x_stride = x.stride,
                                              .cols = x.cols,
                                              .block = x.cols,
                                              .padded = IntegerStride(x.cols),
                                              .out = out.data,
                                              .out_stride = out.stride,
                                              .scales = out.scales,
                                              .blocks = 1,
                                              .group = 1,
                                              .group_sums = nullptr});
}

void QuantizeForGroups(const Stream& stream, DeviceMatrix<const float> x, const GroupFormat& format,
                       const DeviceIntegers& out) {
  assert(x.rows == out.rows && x.cols == out.cols && out.group_sums != nullptr);
  const int64_t blocks = BlockCount(format, x.cols);
  stream.Launch<QuantizeRows>({.x = x.rows, .y = blocks}, {.x = x.data,
                                                           .x_stride = x.stride,
                                                           .cols = x.cols,
                                                           .block = BlockInputs(format),
                                                           .padded = BlockInputs(format),
                                                           .out = out.data,
                                                           .out_stride = out.stride,
                                                           .scales = out.scales,
                                                           .blocks = blocks,
                                                           .group = format.group,
                                                           .group_sums = out.group_sums});
}

void LinearInt8(const Stream& stream, const DeviceIntegers& x, const DeviceWeight& w,
                DeviceMatrix<float> out) {
  assert(x.cols == w.inputs && w.scales != nullptr && w.inputs <= kernels::kMaxDepthI8);
  assert(out.rows == x.rows && out.cols == w.outputs);
  Launch<ProductInt8Few, ProductInt8Many>(stream, {.a = Words(x.data),
                                                   .a_stride = x.stride / kernels::kQuad,
                                                   .a_scales = x.scales,
                                                   .w = Words(w.panels),
                                                   .w_scales = w.scales,
                                                   .bias = w.bias,
                                                   .out = out.data,
                                                   .out_stride = out.stride,
                                                   .rows = x.rows,
                                                   .k = w.inputs,
                                                   .columns = w.outputs});
}

void LinearGroups(const Stream& stream, const DeviceIntegers& x, const GroupFormat& format,
                  const DeviceWeight& w, DeviceMatrix<float> out) {
  assert(x.cols == w.inputs && x.group_sums != nullptr);
  assert(out.rows == x.rows && out.cols == w.outputs);
  Launch<ProductGroupsFew, ProductGroupsMany>(stream, {.format = format,
                                                       .a = Words(x.data),
                                                       .a_stride = x.stride / kernels::kQuad,
                                                       .a_scales = x.scales,
                                                       .a_sums = x.group_sums,
                                                       .w = static_cast<const uint8_t*>(w.panels),
                                                       .factors = w.scales,
                                                       .bias = w.bias,
                                                       .out = out.data,
                                                       .out_stride = out.stride,
                                                       .rows = x.rows,
                                                       .k = w.inputs,
                                                       .columns = w.outputs});
}

}  // namespace godwit::cuda
