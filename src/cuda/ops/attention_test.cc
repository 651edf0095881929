#include "cuda/ops/attention.h"

#include <algorithm>

#include "base/error.h"
#include "cuda/test_support.h"
#include "kernels/kernel_table.h"

namespace godwit::cuda::attention_test {
namespace {

using kernels::kTileTokens;
using kernels::PadToLanes;

// Random keys and values of a text in pages. Keys behind its end are NaN.
class TextPages {
 public:
  TextPages(DType dtype, int64_t kv_heads, int64_t head_dim, int64_t tokens)
      : dtype_(dtype), head_dim_(head_dim) {
    RandomFloats random(7);
    const int64_t tiles = (tokens + kTileTokens - 1) / kTileTokens;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      pages_.emplace_back(kv_heads * head_bytes() + 64);
      for (int64_t i = 0; i < kv_heads * kTileTokens; ++i) {
        const int64_t head = i / kTileTokens, j = i % kTileTokens;
        const bool there = tile * kTileTokens + j < tokens;
        for (int64_t d = 0; d < head_dim; ++d) {
          Store(Page(tile) + head * head_bytes(), kernels::KeyAt(depth(), d, j),
                there ? random(-2, 2) : kNan);
          Store(Page(tile) + head * head_bytes() + key_bytes(),
                kernels::ValueAt(depth(), head_dim, j, d), there ? random() : kNan);
        }
      }
    }
  }

  int64_t depth() const { return kernels::KvDepth(dtype_); }
  int64_t key_bytes() const {
    return kernels::KeyElements(depth(), head_dim_) * static_cast<int64_t>(SizeOf(dtype_));
  }
  int64_t head_bytes() const {
    return key_bytes() + kTileTokens * PadToLanes(head_dim_) * static_cast<int64_t>(SizeOf(dtype_));
  }
  const uint8_t* Page(int64_t tile) const { return Aligned(pages_[tile]); }
  DType dtype() const { return dtype_; }

  DevicePages On(TestGpu& gpu) {
    places_.clear();
    for (const std::vector<uint8_t>& page : pages_) {
      const std::vector<uint8_t>& bytes = page;
      const auto offset = Aligned(page) - page.data();
      places_.push_back(gpu.Put(bytes) + offset);
    }
    return {.pages = gpu.Put(places_),
            .head_bytes = head_bytes(),
            .value_offset = key_bytes(),
            .dtype = dtype_};
  }

 private:
  static const uint8_t* Aligned(const std::vector<uint8_t>& page) {
    return page.data() + (64 - reinterpret_cast<uintptr_t>(page.data()) % 64) % 64;
  }
  void Store(const uint8_t* base, int64_t element, float x) {
    auto* const to = const_cast<uint8_t*>(base) + element * static_cast<int64_t>(SizeOf(dtype_));
    const F16 half = ToF16(x);
    const BF16 brain = ToBF16(x);
    const void* const from = dtype_ == DType::kF32   ? static_cast<const void*>(&x)
                             : dtype_ == DType::kF16 ? static_cast<const void*>(&half)
                                                     : static_cast<const void*>(&brain);
    std::memcpy(to, from, SizeOf(dtype_));
  }

  DType dtype_;
  int64_t head_dim_;
  std::vector<std::vector<uint8_t>> pages_;
  std::vector<const uint8_t*> places_;
};

struct Case {
  DType dtype;
  int64_t heads, kv_heads, head_dim;
  int64_t position, tokens;
  int64_t begin = 0, end = INT64_MAX, window = INT64_MAX;
  float score_cap = 0;
  bool sinks = false;

  Case WithKeys(int64_t first, int64_t last) const {
    Case changed = *this;
    changed.begin = first;
    changed.end = last;
    return changed;
  }
  Case WithWindow(int64_t last) const {
    Case changed = *this;
    changed.window = last;
    return changed;
  }
  Case WithSinks() const {
    Case changed = *this;
    changed.sinks = true;
    return changed;
  }
  Case WithCap(float cap) const {
    Case changed = *this;
    changed.score_cap = cap;
    return changed;
  }

  DeviceAttentionShape Shape() const {
    return {.heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .value_dim = head_dim,
            .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
            .score_cap = score_cap};
  }
};

const Case kCases[] = {
    {DType::kF32, 1, 1, 1, 0, 1},
    {DType::kF32, 4, 2, 16, 60, 9},
    {DType::kF16, 6, 1, 33, 1020, 7},
    {DType::kBF16, 9, 3, 40, 2050, 5},
    {DType::kBF16, 2, 2, 33, 130, 70},
    {DType::kBF16, 8, 2, 128, 2100, 1},
    {DType::kBF16, 8, 2, 32, 1000, 40},
    {DType::kBF16, 3, 1, 48, 130, 70},
    Case{DType::kF32, 3, 1, 24, 1500, 20}.WithWindow(600),
    Case{DType::kBF16, 4, 4, 64, 1030, 3}.WithKeys(70, INT64_MAX).WithWindow(1000).WithCap(3),
    Case{DType::kF32, 4, 2, 20, 1300, 4}.WithKeys(0, 70).WithSinks(),
    // The first rows see nothing.
    Case{DType::kBF16, 5, 5, 16, 90, 40}.WithKeys(100, INT64_MAX).WithSinks(),
};

// Queries [tokens * heads, head_dim] of the rows [first, first + count) of tokens.
std::vector<float> Queries(const Case& c, int64_t first, int64_t count) {
  const std::vector<float> all = RandomNumbers(c.tokens * c.heads * c.head_dim, 11, -2, 2);
  const int64_t group = c.heads / c.kv_heads;
  std::vector<float> q;
  for (int64_t i = 0; i < count * c.heads; ++i) {  // head-major
    const int64_t kv_head = i / (count * group), token = first + i / group % count;
    const int64_t head = kv_head * group + i % group;
    for (int64_t d = 0; d < c.head_dim; ++d) {
      const float x = all[(token * c.heads + head) * c.head_dim + d];
      q.push_back(c.dtype == DType::kBF16 ? ToFloat(ToBF16(x)) : x);
    }
  }
  return q;
}

std::vector<float> SinkLogits(const Case& c) {
  std::vector<float> logits = RandomNumbers(c.heads, 13, -3, 3);
  logits.back() = -kInfinity;
  return logits;
}

DeviceQueries QueriesOf(const Case& c, DeviceMatrix<const float> q, int64_t first, int64_t count) {
  return {.q = q,
          .tokens = count,
          .position = c.position + first,
          .begin = c.begin,
          .end = c.end,
          .window = c.window};
}

// The tokens [first, first + count) of a case, [count, heads * head_dim].
std::vector<float> Compute(TestGpu& gpu, const Case& c, const DevicePages& pages, int64_t first,
                           int64_t count) {
  const std::vector<float> q = Queries(c, first, count), logits = SinkLogits(c);
  const DeviceQueries queries =
      QueriesOf(c, gpu.PutMatrix(q, count * c.heads, c.head_dim), first, count);
  const auto out = gpu.NewMatrix<float>(count, c.heads * c.head_dim);
  auto* const scratch = gpu.New<float>(AttentionScratchBytes(c.Shape(), queries) / 4);
  Attend(gpu.stream(), c.Shape(), pages, queries, scratch, c.sinks ? gpu.Put(logits) : nullptr,
         nullptr, out);
  return gpu.GetMatrix(out);
}

// One token and head by the scalar kernels, stretch after stretch.
std::vector<float> ByScalarKernels(const Case& c, const TextPages& pages, int64_t token,
                                   int64_t head) {
  const int64_t group = c.heads / c.kv_heads, stride = StateFloats(c.head_dim);
  const int64_t position = c.position + token;
  const int64_t begin = std::max(c.begin, position - c.window + 1);
  const int64_t end = std::min(c.end, position + 1);
  std::vector<float> q = Queries(c, token, 1);
  q = RowsOf(q, c.head_dim, head, 1);  // of one token, head-major order is that of heads
  q.push_back(0);                      // to an even number
  const auto attend = c.dtype == DType::kF32   ? Scalar().attend_tile_f32
                      : c.dtype == DType::kF16 ? Scalar().attend_tile_f16
                                               : Scalar().attend_tile_bf16;
  const auto new_state = [&] {
    kernels::Guarded<float> state(stride);
    std::fill_n(state.data(), stride, 0.0f);
    state[0] = -kInfinity;
    return state;
  };
  auto total = new_state();
  for (int64_t stretch = 0; stretch * kStretchTokens < end; ++stretch) {
    auto state = new_state();
    for (int64_t tile = stretch * kStretchTiles; tile < (stretch + 1) * kStretchTiles; ++tile) {
      const int64_t low = std::clamp<int64_t>(begin - tile * kTileTokens, 0, kTileTokens);
      const int64_t high = std::clamp<int64_t>(end - tile * kTileTokens, low, kTileTokens);
      if (low == high) continue;
      const kernels::TileSpan span = {static_cast<int32_t>(low), static_cast<int32_t>(high)};
      const uint8_t* const keys = pages.Page(tile) + head / group * pages.head_bytes();
      attend({.q = q.data(),
              .q_stride = c.head_dim + 1,
              .spans = &span,
              .rows = 1,
              .k = keys,
              .v = keys + pages.key_bytes(),
              .head_dim = c.head_dim,
              .value_dim = c.head_dim,
              .scale = c.Shape().scale,
              .score_cap = c.score_cap,
              .bias = nullptr,
              .state = state.data(),
              .state_stride = stride});
    }
    Scalar().merge_state(state.data(), c.head_dim, total.data());
  }
  if (c.sinks && SinkLogits(c)[head] != -kInfinity) {
    auto sink = new_state();
    const double score = SinkLogits(c)[head] * 1.4426950408889634;
    sink[0] = static_cast<float>(std::ceil(score));
    sink[kernels::kStateLanes] = static_cast<float>(std::exp2(score - std::ceil(score)));
    Scalar().merge_state(sink.data(), c.head_dim, total.data());
  }
  std::vector<float> out(c.head_dim);
  Scalar().finish_state(total.data(), c.head_dim, out.data());
  return out;
}

// Values are numbers in [-1, 1]. A weight that is rounded to bf16 may fall on the other side, which
// is 2^-8 of the weight.
double Tolerance(const Case& c) { return c.dtype == DType::kBF16 ? 0x1p-10 : 2e-6; }

TEST(Attend, IsCloseToTheScalarKernels) {
  for (const Case& c : kCases) {
    TextPages pages(c.dtype, c.kv_heads, c.head_dim, c.position + c.tokens);
    const std::vector<float> out =
        InBothOrders([&](TestGpu& gpu) { return Compute(gpu, c, pages.On(gpu), 0, c.tokens); });
    for (int64_t i = 0; i < c.tokens * c.heads; ++i) {
      const std::vector<float> expected = ByScalarKernels(c, pages, i / c.heads, i % c.heads);
      for (int64_t d = 0; d < c.head_dim; ++d) {
        ASSERT_NEAR(out[i * c.head_dim + d], expected[d], Tolerance(c))
            << "position " << c.position << ", token " << i / c.heads << ", head " << i % c.heads
            << ", dimension " << d;
      }
    }
  }
}

TEST(Attend, TokensHaveTheSameBitsInEveryChunk) {
  for (const Case& c : kCases) {
    TextPages pages(c.dtype, c.kv_heads, c.head_dim, c.position + c.tokens);
    TestGpu gpu(ThreadOrder::kAscending);
    const DevicePages there = pages.On(gpu);
    const std::vector<uint32_t> all = BitsOf(Compute(gpu, c, there, 0, c.tokens));
    for (const int64_t chunk : {1, 3}) {
      std::vector<uint32_t> chunks;
      for (int64_t token = 0; token < c.tokens; token += chunk) {
        const auto bits = BitsOf(Compute(gpu, c, there, token, std::min(chunk, c.tokens - token)));
        chunks.insert(chunks.end(), bits.begin(), bits.end());
      }
      EXPECT_EQ(chunks, all) << "position " << c.position << ", chunks of " << chunk;
    }
  }
}

// The keys before a stretch's beginning are attended to first, as if they lay elsewhere.
TEST(Attend, GoesOnFromStatesOverOtherKeys) {
  const Case c = Case{DType::kBF16, 4, 2, 24, 2060, 3}.WithSinks();
  TextPages pages(c.dtype, c.kv_heads, c.head_dim, c.position + c.tokens);
  TestGpu gpu(ThreadOrder::kAscending);
  const DevicePages there = pages.On(gpu);
  const std::vector<float> whole = Compute(gpu, c, there, 0, c.tokens);

  const int64_t rows = c.tokens * c.heads;
  const std::vector<float> q = Queries(c, 0, c.tokens), logits = SinkLogits(c);
  const auto matrix = gpu.PutMatrix(q, rows, c.head_dim);
  auto* const scratch =
      gpu.New<float>(AttentionScratchBytes(c.Shape(), QueriesOf(c, matrix, 0, c.tokens)) / 4);
  auto* const states = gpu.New<float>(rows * StateFloats(c.head_dim));
  AttendStates(gpu.stream(), c.Shape(), there,
               QueriesOf(c.WithKeys(0, kStretchTokens), matrix, 0, c.tokens), scratch, nullptr,
               states);
  const auto out = gpu.NewMatrix<float>(c.tokens, c.heads * c.head_dim);
  Attend(gpu.stream(), c.Shape(), there,
         QueriesOf(c.WithKeys(kStretchTokens, INT64_MAX), matrix, 0, c.tokens), scratch,
         gpu.Put(logits), states, out);
  EXPECT_EQ(BitsOf(gpu.GetMatrix(out)), BitsOf(whole));
}

TEST(Attend, ANanKeyMakesItsRowsNan) {
  const Case c = {DType::kF32, 1, 1, 8, 100, 4};
  TextPages pages(c.dtype, 1, c.head_dim, 102);  // the third and the fourth key are NaN
  TestGpu gpu(ThreadOrder::kAscending);
  const std::vector<float> out = Compute(gpu, c, pages.On(gpu), 0, c.tokens);
  for (int64_t i = 0; i < c.tokens * c.head_dim; ++i) {
    EXPECT_EQ(std::isnan(out[i]), i / c.head_dim >= 2) << i;
  }
}

std::string Refusal(DType dtype, int64_t value_dim) {
  TestGpu gpu(ThreadOrder::kAscending);
  try {
    Attend(gpu.stream(), {.heads = 1, .kv_heads = 1, .head_dim = 1, .value_dim = value_dim},
           {.dtype = dtype}, {.q = {nullptr, 0, 1, 1}, .tokens = 0}, nullptr, nullptr, nullptr,
           {nullptr, 0, value_dim, value_dim});
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Attend, RefusesWhatItsKernelsLack) {
  EXPECT_EQ(Refusal(DType::kI8, 64), "attention on a GPU reads keys in F32, F16 or BF16, found I8");
  EXPECT_EQ(Refusal(DType::kBF16, 1024),
            "attention on a GPU takes values of up to 512 numbers, found 1024");
}

}  // namespace
}  // namespace godwit::cuda::attention_test
