#include "cli/options/kv_options.h"

#include <gtest/gtest.h>

namespace godwit::cli::kv_options_test {
namespace {

TEST(KvOptionsTest, AsManyTextsAsMemoryHolds) {
  const std::string tiny = GODWIT_SOURCE_DIR "/tests/data/tiny-llama";  // maximum context 1024
  const Engine unlimited(tiny, {.threads = 1});
  // The number of texts that fit into the memory of `count` f32 texts of `tokens` tokens.
  const auto texts = [&](const SessionOptions& options, int64_t tokens, int64_t count) {
    const int64_t bytes =
        unlimited.KvBytes(tokens, {.kv_type = "f32", .context_tokens = 1 << 20}) * count;
    return TextsAtOnce(Engine(tiny, {.threads = 1, .kv_memory_bytes = bytes}), options);
  };
  EXPECT_EQ(texts({.kv_type = "f32"}, 1024, 5), 5);
  EXPECT_EQ(texts({.kv_type = "bf16"}, 1024, 5), 10);
  EXPECT_EQ(texts({.kv_type = "f32", .context_tokens = 1 << 20}, 4096, 5), 5)
      << "few texts are that long";
  // sinks forgets a page of 64 tokens late, and after a chunk.
  EXPECT_EQ(texts({.kv = "sinks:4+60", .kv_type = "f32", .chunk_tokens = 64}, 192, 5), 5);
  EXPECT_EQ(texts({.kv_type = "f32"}, 1024, 1000), 32);
  EXPECT_EQ(texts({.kv_type = "f32"}, 64, 1), 1);
  EXPECT_GE(TextsAtOnce(unlimited, {}), 1);
}

}  // namespace
}  // namespace godwit::cli::kv_options_test
