// Masked loads must touch nothing past the end. Every input here ends before an unreadable page, so
// a kernel that reads further crashes.
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/kernel_test_support.h"

namespace godwit::kernels::bounds_test {
namespace {

template <class T>
class AtPageEnd {
 public:
  explicit AtPageEnd(int64_t n) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t used = (n * sizeof(T) + page - 1) / page * page;
    bytes_ = used + page;
    void* map = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    map_ = static_cast<char*>(map);
    mprotect(map_ + used, page, PROT_NONE);
    data_ = reinterpret_cast<T*>(map_ + used) - n;
  }
  ~AtPageEnd() { munmap(map_, bytes_); }
  AtPageEnd(const AtPageEnd&) = delete;
  AtPageEnd& operator=(const AtPageEnd&) = delete;
  T* data() { return data_; }

 private:
  char* map_;
  size_t bytes_;
  T* data_;
};

class BoundsTest : public IsaTest {};
GODWIT_FOR_EVERY_ISA(BoundsTest);

TEST_P(BoundsTest, Elementwise) {
  for (const int64_t n : kOddSizes) {
    AtPageEnd<float> a(n), b(n), out(n);
    for (const auto kernel : {table().add, table().multiply}) {
      kernel(a.data(), b.data(), n, out.data());
    }
    for (const auto kernel : {table().silu, table().gelu_erf, table().gelu_tanh, table().relu}) {
      kernel(a.data(), n, out.data());
    }
    table().clamp(a.data(), 1, n, out.data());
    table().times_sigmoid(a.data(), b.data(), n, out.data());
  }
}

TEST_P(BoundsTest, Norms) {
  for (const int64_t n : kOddSizes) {
    AtPageEnd<float> x(n), weight(n), bias(n), out(n);
    table().rms_norm(x.data(), weight.data(), 1, n, out.data());
    table().layer_norm(x.data(), weight.data(), bias.data(), 1, n, out.data());
  }
}

TEST_P(BoundsTest, WeightedRows) {
  for (const int64_t n : kOddSizes) {
    AtPageEnd<float> x(n), row(n), weights(1), out(n), dot(1);
    const float* const from = row.data();
    const float* const weight = weights.data();
    float* const to = out.data();
    table().add_weighted_rows(
        {.weights = &weight, .from = &from, .out = &to, .rows = 1, .count = 1, .columns = n});
    table().dot_rows(x.data(), &from, 1, n, dot.data());
    AtPageEnd<float> y(n), other_dot(1);
    table().dot_decayed_rows({.x = x.data(),
                              .y = y.data(),
                              .rows = &from,
                              .decays = &from,
                              .x_dots = dot.data(),
                              .y_dots = other_dot.data(),
                              .count = 1,
                              .n = n});
    table().decays(x.data(), y.data(), 1, n, out.data());
  }
}

TEST_P(BoundsTest, RotateHalf) {
  for (const int64_t half : kOddSizes) {
    AtPageEnd<float> cos(half), sin(half), x(2 * half);
    table().rotate_half(cos.data(), sin.data(), half, x.data());
  }
}

TEST_P(BoundsTest, HadamardAndCentreScores) {
  for (const int64_t n : kOddSizes) {
    AtPageEnd<float> x(n), bias(kTileTokens);
    AtPageEnd<BF16> centre(n);
    table().hadamard(n, x.data());
    table().centre_scores({.q = x.data(),
                           .q_stride = n,
                           .rows = 1,
                           .centre = centre.data(),
                           .head_dim = n,
                           .scale = 1,
                           .bias = bias.data(),
                           .bias_stride = kTileTokens});
  }
}

TEST_P(BoundsTest, WidenNibbles) {
  AtPageEnd<uint8_t> levels(16);
  for (const int64_t bytes : {kTileTokens, 2 * kTileTokens, 9 * kTileTokens}) {
    AtPageEnd<uint8_t> nibbles(bytes), out(2 * bytes);
    table().widen_nibbles({nibbles.data(), bytes, levels.data(), out.data()});
  }
}

TEST_P(BoundsTest, Conversions) {
  for (const int64_t n : kOddSizes) {
    AtPageEnd<float> wide(n);
    AtPageEnd<BF16> bf16(n);
    AtPageEnd<F16> f16(n);
    table().bf16_to_f32(bf16.data(), n, wide.data());
    table().f16_to_f32(f16.data(), n, wide.data());
    table().f32_to_bf16(wide.data(), n, bf16.data());
    table().f32_to_f16(wide.data(), n, f16.data());
  }
}

TEST_P(BoundsTest, Gemm) {
  constexpr int64_t kRows = 7;
  for (const int64_t k : {1, 2, 33}) {
    for (const int64_t columns : {1, 63, 64, 65}) {
      const int64_t panels = (columns + kPanelColumns - 1) / kPanelColumns;
      const int64_t even = k + k % 2;
      AtPageEnd<float> a(kRows * k), w(panels * k * kPanelColumns), bias(columns);
      AtPageEnd<float> out(kRows * columns);
      GemmArgs args = {.a = a.data(),
                       .a_stride = k,
                       .w = w.data(),
                       .bias = bias.data(),
                       .out = out.data(),
                       .out_stride = columns,
                       .rows = kRows,
                       .k = k,
                       .columns = columns,
                       .panel_begin = 0,
                       .panel_end = panels};
      table().gemm_f32(args);
      AtPageEnd<F16> f16(panels * k * kPanelColumns);
      args.w = f16.data();
      table().gemm_f16(args);
      AtPageEnd<BF16> pairs(kRows * even), bf16(panels * even * kPanelColumns);
      args.a = pairs.data();
      args.a_stride = even;
      args.w = bf16.data();
      table().gemm_bf16(args);
    }
  }
}

TEST_P(BoundsTest, Quantize) {
  for (const int64_t n : kOddSizes) {
    AtPageEnd<float> x(n);
    AtPageEnd<int8_t> out((n + kQuad - 1) / kQuad * kQuad);
    table().largest_magnitude(x.data(), n);
    table().quantize(x.data(), 1, n, out.data());
  }
}

TEST_P(BoundsTest, GemmI8) {
  for (const int64_t rows : {7, 16, 17, 33}) {
    for (const int64_t quads : {1, 2, 16, 33, 300}) {
      for (const int64_t columns : {1, 63, 64, 65}) {
        const int64_t panels = (columns + kPanelColumns - 1) / kPanelColumns;
        AtPageEnd<int8_t> a(rows * quads * kQuad);
        AtPageEnd<uint8_t> w(panels * quads * kQuad * kPanelColumns);
        AtPageEnd<float> bias(columns), out(rows * columns), a_scales(rows), w_scales(columns);
        AtPageEnd<int32_t> a_sums(rows);
        table().gemm_i8({.a = a.data(),
                         .a_stride = quads * kQuad,
                         .w = w.data(),
                         .bias = bias.data(),
                         .out = out.data(),
                         .out_stride = columns,
                         .rows = rows,
                         .k = quads * kQuad,
                         .columns = columns,
                         .panel_begin = 0,
                         .panel_end = panels,
                         .a_scales = a_scales.data(),
                         .a_sums = a_sums.data(),
                         .w_scales = w_scales.data()});
      }
    }
  }
}

TEST_P(BoundsTest, Attention) {
  constexpr int64_t kRows = 19;
  for (const int64_t head_dim : {1, 16, 17, 64, 80, 128}) {
    const int64_t width = PadToLanes(head_dim), stride = kStateHeader + width;
    const int64_t padded = (head_dim + kQuad - 1) / kQuad * kQuad;
    AtPageEnd<float> q(kRows * padded), state(kRows * stride), out(head_dim),
        bias(kRows * kTileTokens);
    AtPageEnd<int8_t> q8(kRows * padded);
    AtPageEnd<float> scales(kTileTokens), q_scales(kRows);
    AtPageEnd<int32_t> q_sums(kRows);
    const std::vector<TileSpan> spans(kRows, {0, kTileTokens});
    const auto attend = [&](auto kernel, const void* queries, auto element, DType dtype) {
      using T = decltype(element);
      AtPageEnd<T> k(KeyElements(KvDepth(dtype), head_dim)), v(kTileTokens * width);
      kernel({.q = queries,
              .q_stride = padded,
              .spans = spans.data(),
              .rows = kRows,
              .k = k.data(),
              .v = v.data(),
              .head_dim = head_dim,
              .value_dim = head_dim,
              .scale = 1,
              .bias = bias.data(),
              .state = state.data(),
              .state_stride = stride,
              .k_scales = scales.data(),
              .v_scales = scales.data(),
              .q_scales = q_scales.data(),
              .q_sums = q_sums.data()});
    };
    const auto turn = [&](auto element, DType dtype) {
      using T = decltype(element);
      AtPageEnd<T> k(KeyElements(KvDepth(dtype), head_dim)), v(kTileTokens * width);
      table().values_of_keys(
          {.dtype = dtype, .k = k.data(), .head_dim = head_dim, .first = 0, .v = v.data()});
    };
    turn(float{}, DType::kF32);
    turn(F16{}, DType::kF16);
    turn(BF16{}, DType::kBF16);
    turn(int8_t{}, DType::kI8);
    attend(table().attend_tile_f32, q.data(), float{}, DType::kF32);
    attend(table().attend_tile_f16, q.data(), F16{}, DType::kF16);
    attend(table().attend_tile_bf16, q.data(), BF16{}, DType::kBF16);
    attend(table().attend_tile_i8, q.data(), int8_t{}, DType::kI8);
    attend(table().attend_tile_i8_i8, q8.data(), int8_t{}, DType::kI8);
    table().merge_state(state.data() + (kRows - 1) * stride, head_dim, state.data());
    table().finish_state(state.data() + (kRows - 1) * stride, head_dim, out.data());
  }
}

}  // namespace
}  // namespace godwit::kernels::bounds_test
