#include "eval/scored_leading_tokens.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace godwit::eval::leading_tokens_test {
namespace {

const std::filesystem::path kTiny = GODWIT_SOURCE_DIR "/tests/data/tiny-llama";

TEST(ScoredLeadingTokens, IsWhatTheTokenizerPutsInFront) {
  const Engine engine(kTiny, {.threads = 1});
  const auto frame = ScoredLeadingTokens(engine);
  auto expected = frame;
  for (const int32_t token : engine.Tokenize("The sea", false)) expected.push_back(token);
  EXPECT_EQ(engine.Tokenize("The sea"), expected);
  EXPECT_EQ(frame, std::vector<int32_t>{1});  // its BOS
}

TEST(ScoredLeadingTokens, LeavesTheSinkTokenToTheSession) {
  const std::filesystem::path folder = testing::TempDir() + "frame_test_model";
  std::filesystem::remove_all(folder);
  std::filesystem::copy(kTiny, folder);
  auto config = nlohmann::json::parse(ReadTextFile(kTiny / "config.json", 1 << 20));
  config["sink_token_id"] = 1;
  std::filesystem::remove(folder / "config.json");
  std::ofstream(folder / "config.json") << config;
  const Engine engine(folder, {.threads = 1});
  EXPECT_EQ(ScoredLeadingTokens(engine), std::vector<int32_t>{});
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace godwit::eval::leading_tokens_test
