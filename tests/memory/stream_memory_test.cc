// A stream that is far longer than any context, in memory that does not grow.

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "tests/memory/resident.h"
#include "tests/model_runner.h"

namespace godwit::stream_memory_test {
namespace {

// Reads a random text of `tokens` tokens in chunks, and compares the memory after `warm_up` and at
// the end.
void ExpectFlatMemory(int64_t warm_up, int64_t tokens) {
  constexpr int64_t kChunk = 512, kSinks = 4, kWindow = 252;
  const ModelRunner runner(GODWIT_SOURCE_DIR "/tests/golden/llama/gqa");
  const auto text = runner.NewText({.kv = "sinks:4+252"});
  ThreadPool pool(2);
  Workspace workspace;
  const Exec exec{.pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
  const int64_t most =
      text->cache().layout().BytesFor(64 + kWindow + 64 + TextCache::kMaxRollbackTokens);
  const auto vocab = static_cast<uint64_t>(runner.spec().vocab_size);
  std::vector<int32_t> chunk(kChunk);
  std::vector<float> hidden(kChunk * runner.decoder().hidden_size());

  int64_t resident = 0;
  while (text->length() < tokens) {
    const int64_t length = text->length();
    const int64_t n = std::min(kChunk, tokens - length);
    for (int64_t i = 0; i < n; ++i) {
      chunk[i] = static_cast<int32_t>(RandomBits(1, 0, length + i, 0) % vocab);
    }
    const Segment segment{std::span(chunk).first(n), text.get()};
    const int64_t cols = runner.decoder().hidden_size();
    runner.decoder().Forward(exec, {&segment, 1}, {hidden.data(), n, cols, cols});
    ASSERT_TRUE(std::isfinite(hidden[0])) << "at token " << length;

    const KvStats stats = text->Stats();
    ASSERT_LE(stats.bytes, most);
    ASSERT_EQ(stats.seen, length + n);
    ASSERT_EQ(stats.kept, std::min(length + n, kSinks + kWindow));
    if (length < warm_up && text->length() >= warm_up) resident = ResidentBytes();
  }
  ASSERT_GT(resident, 0);
  if (!kSanitized) {
    EXPECT_LT(std::abs(ResidentBytes() - resident), 1 << 20);
  }
}

TEST(StreamMemory, IsFlatOver20000Tokens) { ExpectFlatMemory(2000, 20'000); }

TEST(StreamMemory, IsFlatOver200000Tokens) {
  if (kSanitized) GTEST_SKIP() << "notice: minutes under a sanitizer, and nothing new to see there";
  ExpectFlatMemory(20'000, 200'000);
}

}  // namespace
}  // namespace godwit::stream_memory_test
