#include "cli/options/kv_options.h"

#include <gtest/gtest.h>

#include "attention/make_policy.h"
#include "checkpoint/model_folder.h"

namespace godwit::cli {
namespace {

TEST(KvOptionsTest, AsManyTextsAsMemoryHolds) {
  const ModelFolder folder(GODWIT_SOURCE_DIR "/tests/data/tiny-llama");
  const DecoderSpec& spec = folder.spec();  // made for 1024 tokens
  const auto texts = [&](const SessionOptions& options, int64_t tokens, int64_t count) {
    const int64_t bytes = LayoutOf(Geometry(spec), DType::kF32).BytesFor(tokens) * count;
    return TextsAtOnce(spec, options, bytes);
  };
  EXPECT_EQ(texts({.kv_type = "f32"}, 1024, 5), 5);
  EXPECT_EQ(texts({.kv_type = "bf16"}, 1024, 5), 10);
  EXPECT_EQ(texts({.kv_type = "f32", .context_tokens = 1 << 20}, 4096, 5), 5)
      << "few texts are that long";
  EXPECT_EQ(texts({.kv = "sinks:4+60", .kv_type = "f32"}, 64, 5), 5);
  EXPECT_EQ(texts({.kv_type = "f32"}, 1024, 1000), 32);
  EXPECT_EQ(TextsAtOnce(spec, {}, 1), 1);
  EXPECT_GE(TextsAtOnce(spec, {}, 0), 1);
}

}  // namespace
}  // namespace godwit::cli
