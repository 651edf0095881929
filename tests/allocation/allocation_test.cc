// Decode allocates nothing: after a few steps that find their sizes, none of 100 steps calls
// operator new.
//
// Two things do not count. Pages of the KV cache come from the system, and their table grows with
// them as vectors do. sequence.tokens is the caller's output, for which the caller reserves.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "generate/autoregressive.h"
#include "generate/step_together.h"
#include "tests/golden/reference.h"
#include "tests/model_runner.h"

namespace {

std::atomic<int64_t> g_allocations = 0;

void* Allocate(std::size_t bytes, std::size_t alignment) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The other forms (arrays, nothrow) end up in these. They are not inlined: otherwise GCC would warn
// of free() on memory from new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return Allocate(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace godwit::allocation_test {
namespace {

struct Case {
  std::string model;
  std::string kv;
  DType kv_type;
  int threads;
  SamplerOptions sampler;
  std::optional<DType> weights = std::nullopt;  // none: the golden's own
};

class AllocationTest : public testing::TestWithParam<Case> {};

TEST_P(AllocationTest, ADecodeStepAllocatesNothing) {
  // The 100 steps cross position 1024, which takes a 17th page and a second stretch of attention.
  constexpr int64_t kPrompt = 960, kWarmUp = 40, kSteps = 100, kChunk = 64;
  const ModelRunner runner(
      GoldenRoot() / GetParam().model,
      GetParam().weights ? GetParam().weights : GoldenOf(GetParam().model).Weights());
  ThreadPool pool(GetParam().threads);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  for (const size_t texts : {1, 8}) {
    Autoregressive strategy;
    std::vector<Sequence> sequences;
    std::vector<Participant> participants;
    sequences.reserve(texts);
    for (size_t i = 0; i < texts; ++i) {
      // The texts stand at different places of a page; the last of eight is still short.
      const auto prompt = static_cast<size_t>(i == 7 ? 1 : kPrompt - 5 * static_cast<int64_t>(i));
      sequences.push_back(
          {.tokens = std::vector<int32_t>(prompt, 7),
           .cache = runner.NewText(
               {.kv = GetParam().kv, .kv_type = GetParam().kv_type, .context = 4096}),
           .sampler = Sampler(GetParam().sampler, static_cast<int32_t>(runner.spec().vocab_size))});
      sequences.back().tokens.reserve(4096);
      sequences.back().cache->Reserve(4096);  // the table keeps its capacity
      sequences.back().cache->Truncate(0);
      participants.push_back(
          {.sequence = &sequences.back(), .strategy = &strategy, .max_tokens = kChunk});
    }
    const Sequence& first = sequences.front();
    while (std::ssize(first.tokens) < kPrompt + kWarmUp)
      StepTogether(runner.decoder(), exec, participants);

    const int64_t before = g_allocations;
    for (int64_t step = 0; step < kSteps; ++step)
      StepTogether(runner.decoder(), exec, participants);
    EXPECT_EQ(g_allocations - before, 0) << "in " << kSteps << " steps of " << texts << " texts";
    EXPECT_EQ(first.cache->length(), kPrompt + kWarmUp + kSteps - 1);
    for (const Participant& one : participants) EXPECT_EQ(one.error, nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, AllocationTest,
    testing::Values(Case{"llama/gqa", "dense", DType::kF32, 1, {.temperature = 0}},
                    Case{"llama/gqa", "dense", DType::kBF16, 2, {.repeat_penalty = 1.1f}},
                    Case{"mpt/storywriter", "dense", DType::kF32, 2, {.temperature = 0}},
                    Case{"mixtral/two_of_five", "dense", DType::kF32, 2, {.temperature = 0}},
                    Case{"glm4/sandwich", "dense", DType::kF32, 1, {.temperature = 0}},
                    Case{"llama/gqa", "sinks:4+40", DType::kF32, 2, {.temperature = 0}},
                    Case{"llama/gqa", "sinks:4+200", DType::kF16, 1, {.frequency_penalty = 0.5f}},
                    Case{"falcon/alibi", "sinks:4+200", DType::kF32, 1, {.temperature = 0}},
                    Case{"llama/gqa", "dense", DType::kI8, 2, {.temperature = 0}, DType::kI8}));

TEST(AllocationCounter, Counts) {
  const int64_t before = g_allocations;
  { const std::vector<int> one(100); }
  EXPECT_EQ(g_allocations - before, 1);
}

}  // namespace
}  // namespace godwit::allocation_test
