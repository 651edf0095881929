// Every input of the corpus goes through its fuzz target in the ordinary build as well. Faults that
// the fuzzer found stay fixed where there is no clang.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace godwit::fuzz::replay_test {
namespace {

void Replay(const std::string& folder, void (*target)(std::span<const uint8_t>)) {
  const auto corpus =
      std::filesystem::path(GODWIT_SOURCE_DIR) / "tests" / "fuzz" / "corpus" / folder;
  size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    target({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    ++inputs;
  }
  EXPECT_GT(inputs, 10u);
}

TEST(FuzzReplayTest, Safetensors) { Replay("safetensors", FuzzSafetensors); }
TEST(FuzzReplayTest, Gguf) { Replay("gguf", FuzzGguf); }
TEST(FuzzReplayTest, Config) { Replay("config", FuzzConfig); }
TEST(FuzzReplayTest, TokenizerConfig) { Replay("tokenizer_config", FuzzTokenizerConfig); }
TEST(FuzzReplayTest, GenerationConfig) { Replay("generation_config", FuzzGenerationConfig); }
TEST(FuzzReplayTest, Tasks) { Replay("tasks", FuzzTasks); }
TEST(FuzzReplayTest, Snapshot) { Replay("snapshot", FuzzSnapshot); }
TEST(FuzzReplayTest, Packed) { Replay("packed", FuzzPacked); }
TEST(FuzzReplayTest, PackedRows) { Replay("packed_rows", FuzzPackedRows); }
TEST(FuzzReplayTest, CompletionRequest) { Replay("completion_request", FuzzCompletionRequest); }
TEST(FuzzReplayTest, Http) { Replay("http", FuzzHttp); }
TEST(FuzzReplayTest, JsonSchema) { Replay("json_schema", FuzzJsonSchema); }
TEST(FuzzReplayTest, ToolCalls) { Replay("tool_calls", FuzzToolCalls); }
TEST(FuzzReplayTest, SentencePiece) { Replay("sentencepiece", FuzzSentencePiece); }
TEST(FuzzReplayTest, Tokenizer) { Replay("tokenizer", ReplayTokenizer); }
TEST(FuzzReplayTest, Template) { Replay("template", ReplayTemplate); }

}  // namespace
}  // namespace godwit::fuzz::replay_test
