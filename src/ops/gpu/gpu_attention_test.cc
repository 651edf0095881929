// Attention on an emulated GPU over pages of the host, beside the same on the CPU.
#include "ops/gpu/gpu_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cuda/faulty_device_test_support.h"
#include "ops/attention_test_support.h"
#include "ops/gpu/gpu_turn.h"
#include "ops/test_support.h"

namespace godwit::ops::gpu_attention_test {
namespace {

struct Case {
  const char* name;
  AttentionShape shape;
  DType dtype;
  int64_t position = 0;
  int64_t tokens = 1;
  Visible visible = {};
  bool sinks = false;
};

AttentionShape Capped(AttentionShape shape) {
  shape.score_cap = 3;
  return shape;
}

// Passes are of 2,048 tokens in F32, and of 4,096 in the other types.
const Case kCases[] = {
    {"one_key", MakeShape(1, 1, 8), DType::kF32},
    {"begins_a_text", MakeShape(4, 2, 16), DType::kBF16, 0, 70},
    {"two_places", MakeShape(2, 1, 16), DType::kBF16, 4090, 9},
    {"places_again", MakeShape(2, 2, 9), DType::kF32, 8180, 15},
    {"f16_in_places", MakeShape(3, 1, 20), DType::kF16, 8190, 5, {}, true},
    {"window", MakeShape(4, 2, 12), DType::kF32, 6140, 9, {.window = 3000}},
    {"short_window", MakeShape(2, 1, 32), DType::kBF16, 1020, 90, {.window = 7}},
    {"blocks", MakeShape(4, 2, 12), DType::kF32, 0, 95, {.block = 30}},
    {"long_blocks", MakeShape(6, 2, 16), DType::kBF16, 5990, 25, {.block = 2000}, true},
    {"blocks_with_windows", MakeShape(2, 1, 16), DType::kF16, 90, 40, {.window = 11, .block = 50}},
    {"overlapping_blocks", MakeShape(2, 2, 9), DType::kBF16, 100, 75, {.block = 40, .overlap = 13}},
    {"behind_keys", MakeShape(2, 2, 16), DType::kBF16, 5000, 4, {.begin = 4100}, true},
    {"capped", Capped(MakeShape(6, 2, 48)), DType::kBF16, 100, 40},
};

class GpuAttentionTest : public testing::TestWithParam<Case> {
 protected:
  GpuAttentionTest()
      : cache_(shape(), GetParam().dtype, GetParam().position + GetParam().tokens, 5),
        queries_(shape(), GetParam().tokens, 11) {
    cache_.WriteRandom(0, GetParam().position + GetParam().tokens);
    RandomFloats random(13);
    if (GetParam().sinks) {
      for (int64_t i = 0; i < shape().heads; ++i) sinks_.push_back(random(-3, 3));
    }
  }

  const AttentionShape& shape() const { return GetParam().shape; }

  // Texts of the tokens between two neighbouring cuts, in one call.
  std::vector<float> Run(Gpu* gpu, const std::vector<int64_t>& cuts) const {
    const Exec exec{
        .pool = pool_, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
    std::vector<GappedMatrix> queries;
    std::vector<AttentionSource> sources;
    std::vector<AttentionRows> texts;
    for (size_t i = 1; i < cuts.size(); ++i) {
      queries.push_back(queries_.HeadMajor(cuts[i - 1], cuts[i]));
      sources.push_back({.kv = cache_.View(), .q = {}, .visible = GetParam().visible});
      texts.push_back({.first_row = cuts[i - 1] - cuts[0],
                       .rows = cuts[i] - cuts[i - 1],
                       .position = GetParam().position + cuts[i - 1]});
    }
    int64_t most = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      sources[i].q = queries[i].view();
      texts[i].sources = {&sources[i], 1};
      most = std::max(most, texts[i].rows);
    }
    GappedMatrix out(cuts.back() - cuts.front(), shape().heads * shape().value_dim());
    if (gpu == nullptr) {
      Attention(exec, shape(), {}, texts, sinks_, out.view());
    } else {
      const GpuAttentionMemory memory = GpuAttentionMemoryOf(shape(), most);
      GpuTurn turn(exec, *gpu, memory.scratch_bytes, memory.host_bytes);
      AttendOnGpu(turn, shape(), texts, sinks_, out.view());
      EXPECT_EQ(turn.scratch().used() + turn.host().used(), 0);
    }
    EXPECT_TRUE(out.GapsIntact());
    return out.Values();
  }

  static std::unique_ptr<Gpu> NewGpu(cuda::ThreadOrder order = cuda::ThreadOrder::kAscending) {
    return std::make_unique<Gpu>(
        std::make_unique<cuda::EmulatedDevice>(cuda::EmulatedOptions{.order = order}), 0);
  }

  mutable ThreadPool pool_{2};
  mutable Workspace workspace_;
  Cache cache_;
  Queries queries_;
  std::vector<float> sinks_;
};

// Values are up to 1. A weight that is rounded to bf16 may fall on the other side, which is 2^-8 of
// it. Few keys may have nearly all weight.
TEST_P(GpuAttentionTest, IsCloseToTheCpu) {
  const std::vector<float> expected = Run(nullptr, {0, GetParam().tokens});
  for (const auto order : {cuda::ThreadOrder::kAscending, cuda::ThreadOrder::kDescending}) {
    const auto gpu = NewGpu(order);
    const std::vector<float> out = Run(gpu.get(), {0, GetParam().tokens});
    ASSERT_EQ(out.size(), expected.size());
    const float tolerance = GetParam().dtype == DType::kBF16 ? 0x1p-8f : 2e-6f;
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], tolerance) << i;
  }
}

TEST_P(GpuAttentionTest, HasTheSameBitsInEveryChunkAndBatch) {
  const auto gpu = NewGpu();
  const int64_t tokens = GetParam().tokens;
  const std::vector<float> expected = Run(gpu.get(), {0, tokens});
  for (const int64_t chunk : {int64_t{1}, int64_t{7}}) {
    std::vector<int64_t> cuts;
    for (int64_t token = 0; token < tokens; token += chunk) cuts.push_back(token);
    cuts.push_back(tokens);
    EXPECT_EQ(Run(gpu.get(), cuts), expected) << "texts of " << chunk;
    std::vector<float> all;
    for (size_t i = 1; i < std::min<size_t>(cuts.size(), 12); ++i) {
      const std::vector<float> part = Run(gpu.get(), {cuts[i - 1], cuts[i]});
      all.insert(all.end(), part.begin(), part.end());
    }
    ASSERT_LE(all.size(), expected.size());
    EXPECT_TRUE(std::equal(all.begin(), all.end(), expected.begin())) << "chunks of " << chunk;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuAttentionTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(WhyNoGpuAttention, NamesWhatIsBeyondIt) {
  const AttentionShape shape = MakeShape(2, 1, 16);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    EXPECT_EQ(WhyNoGpuAttention(shape, {}, dtype), "");
  }
  EXPECT_EQ(WhyNoGpuAttention(shape, {}, DType::kI8),
            "GPUs attend to keys and values stored as f32, f16 or bf16, found int8");
  EXPECT_EQ(WhyNoGpuAttention(shape, {.slopes = {0.5f, 0.25f}}, DType::kF32),
            "GPUs attend without ALiBi's biases, which this model has");
  AttentionShape latent = shape;
  latent.values_from = 4;
  EXPECT_EQ(WhyNoGpuAttention(latent, {}, DType::kF32),
            "GPUs attend to values beside their keys, found values in keys");
  EXPECT_EQ(WhyNoGpuAttention(MakeShape(2, 1, 1024), {}, DType::kF32),
            "GPUs attend to heads of up to 512 numbers, found 1024");
}

}  // namespace
}  // namespace godwit::ops::gpu_attention_test
