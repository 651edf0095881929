// The shares of 16, 32 and 64 cores in the operations of a layer, counted, not timed. Kernels that
// compute nothing add up the work that they were given. Each fork-join's tasks are shared out among
// the cores as the pool does it.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <vector>

#include "kernels/dispatch.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/profile.h"

namespace godwit::ops::shares_test {
namespace {

// The work that kernels on this thread were given.
thread_local int64_t work = 0;

void CountGemm(const kernels::GemmArgs& args) noexcept {
  const int64_t end = std::min(args.columns, args.panel_end * kernels::kPanelColumns);
  work += args.rows * args.k * (end - args.panel_begin * kernels::kPanelColumns);
}

void CountTile(const kernels::AttendTileArgs& args) noexcept {
  for (int64_t row = 0; row < args.rows; ++row) {
    if (args.spans[row].begin == args.spans[row].end) continue;
    work += kernels::kTileTokens * (args.head_dim + args.value_dim);
  }
}

void CountState(const float*, int64_t value_dim, float*) noexcept { work += value_dim; }

kernels::KernelTable CountingKernels(int64_t product_bytes) {
  kernels::KernelTable table = *kernels::AllIsas().back().table;
  table.gemm_bf16 = CountGemm;
  table.attend_tile_f32 = CountTile;
  table.merge_state = CountState;
  table.finish_state = CountState;
  table.product_bytes = product_bytes;
  return table;
}

// The time of the busiest core, if each takes the next task when it has finished one.
int64_t Longest(const std::vector<int64_t>& tasks, int cores) {
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> ends;
  for (int core = 0; core < cores; ++core) ends.push(0);
  int64_t last = 0;
  for (const int64_t task : tasks) {
    const int64_t end = ends.top() + task;
    ends.pop();
    ends.push(end);
    last = std::max(last, end);
  }
  return last;
}

// Layers of models, and the numbers of cores and ways of cutting products that they are tried with.
struct Layer {
  const char* name;
  int64_t hidden, mlp, heads, kv_heads, head_dim;
};
constexpr Layer kLayers[] = {{"1b", 2048, 8192, 32, 8, 64}, {"8b", 4096, 14336, 32, 8, 128}};
constexpr int kCores[] = {16, 32, 64};
constexpr int64_t kProductBytes[] = {0, 5 << 18};  // small blocks, and those of AMX

// Work and the time of all cores, in the same unit.
struct Use {
  double work = 0, cores = 0;
  double share() const { return work / cores; }
};

class SharesTest : public testing::Test {
 protected:
  // The use of the cores in the fork-joins of `run`.
  template <typename Run>
  Use UseOf(int threads, const Run& run) {
    ThreadPool pool(threads);
    Profile profile(threads, [] { return work; });
    std::vector<ForkJoin> joins;
    profile.KeepTasks(&joins);
    run(Exec{.pool = pool, .kernels = kernels_, .workspace = workspace_, .profile = &profile});
    Use use;
    for (const ForkJoin& join : joins) {
      const auto sum = std::accumulate(join.task_ns.begin(), join.task_ns.end(), int64_t{0});
      use.work += static_cast<double>(sum);
      use.cores += static_cast<double>(Longest(join.task_ns, threads) * threads);
    }
    EXPECT_GT(use.work, 0);
    EXPECT_GE(use.cores, use.work);
    return use;
  }

  Use OfProduct(int threads, int64_t rows, int64_t outputs, int64_t inputs) {
    Weight w;
    w.dtype = DType::kBF16;
    w.outputs = outputs;
    w.inputs = inputs;
    return UseOf(threads, [&](const Exec& exec) {
      Workspace::Scope scope(workspace_);
      const LinearRows x = NewLinearRows(exec, w, rows);
      Linear(exec, x, w, workspace_.Matrix<float>(rows, outputs));
    });
  }

  Use OfAttention(int threads, const Layer& layer, int64_t rows, int64_t depth) {
    const int64_t head_bytes = 2 * kernels::kTileTokens * layer.head_dim * int64_t{sizeof(float)};
    Buffer page(layer.kv_heads * head_bytes);
    const std::vector<PageData> pages((depth + rows) / kernels::kTileTokens + 1,
                                      PageData(page.data()));
    return UseOf(threads, [&](const Exec& exec) {
      Workspace::Scope scope(workspace_);
      const AttentionSource source{
          .kv = {.dtype = DType::kF32,
                 .pages = pages.data(),
                 .page_stride = 1,
                 .slots = std::ssize(pages),
                 .head_bytes = head_bytes,
                 .value_offset = head_bytes / 2},
          .q = workspace_.Matrix<float>(rows * layer.heads, layer.head_dim)};
      const AttentionRows text{
          .first_row = 0, .rows = rows, .position = depth, .sources = {&source, 1}};
      Attention(exec,
                {.heads = layer.heads,
                 .kv_heads = layer.kv_heads,
                 .head_dim = layer.head_dim,
                 .scale = 1},
                {}, {&text, 1}, {}, workspace_.Matrix<float>(rows, layer.heads * layer.head_dim));
    });
  }

  std::vector<Use> OfProducts(int threads, const Layer& layer, int64_t rows) {
    const int64_t q = layer.heads * layer.head_dim, kv = layer.kv_heads * layer.head_dim;
    return {OfProduct(threads, rows, q + 2 * kv, layer.hidden),
            OfProduct(threads, rows, layer.hidden, q),
            OfProduct(threads, rows, 2 * layer.mlp, layer.hidden),
            OfProduct(threads, rows, layer.hidden, layer.mlp)};
  }

  kernels::KernelTable kernels_ = CountingKernels(0);
  Workspace workspace_;
};

// Chunks of a prompt. No operation of a layer leaves more than 15 % of the cores' time idle, and
// all together leave a tenth at most. Before blocks were cut for many cores, a product left 27 %
// idle on 64 of them, and attention 22 %.
TEST_F(SharesTest, RELEASE_APromptKeepsAllCoresBusy) {
  for (const Layer& layer : kLayers) {
    for (const int cores : kCores) {
      for (const int64_t rows : {512, 2048}) {
        const Use attention = OfAttention(cores, layer, rows, rows == 512 ? 0 : 1000);
        for (const int64_t bytes : kProductBytes) {
          kernels_ = CountingKernels(bytes);
          std::vector<Use> uses = OfProducts(cores, layer, rows);
          uses.push_back(attention);
          Use all;
          for (size_t i = 0; i < uses.size(); ++i) {
            EXPECT_GE(uses[i].share(), 0.85)
                << layer.name << ", " << rows << " rows on " << cores << " cores, use " << i;
            all.work += uses[i].work;
            all.cores += uses[i].cores;
          }
          EXPECT_GE(all.share(), 0.9) << layer.name << ", " << rows << ", " << cores;
        }
      }
    }
  }
}

// One token of an answer. A panel of 64 outputs is the least that a core multiplies. The 32 panels
// of the small layer's products thus leave half of 64 cores idle. The bandwidth of memory, which
// all share, is exhausted by fewer cores.
TEST_F(SharesTest, RELEASE_ATokenKeepsAsManyCoresBusyAsProductsHavePanels) {
  for (const Layer& layer : kLayers) {
    for (const int cores : kCores) {
      Use all;
      for (const Use& use : OfProducts(cores, layer, 1)) {
        EXPECT_GE(use.share(), cores < 64 ? 0.75 : 0.5) << layer.name << " on " << cores;
        all.work += use.work;
        all.cores += use.cores;
      }
      EXPECT_GE(all.share(), cores < 64 ? 0.94 : 0.7) << layer.name << " on " << cores;
      // A head of few keys is one task, as its sums have one order; many keys are cut in stretches.
      EXPECT_GE(OfAttention(cores, layer, 1, 16384).share(), 0.95);
    }
  }
}

// Cores that take whole tasks as they come.
TEST(Longest, IsTheTimeOfTheBusiestCore) {
  EXPECT_EQ(Longest({3, 3, 3}, 2), 6);
  EXPECT_EQ(Longest({1, 1, 4}, 2), 5);
  EXPECT_EQ(Longest({4, 1, 1}, 2), 4);
  EXPECT_EQ(Longest({5, 7}, 64), 7);
}

}  // namespace
}  // namespace godwit::ops::shares_test
