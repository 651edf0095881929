#include "checkpoint/gguf_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"

namespace godwit::gguf_choice_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GgufChoice, TheQuantizationEndsTheName) {
  const std::pair<const char*, const char*> cases[] = {
      {"m/Llama-3.2-1B-Instruct-Q4_K_M.gguf", "Q4_K_M"},
      {"m/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "q4_k_m"},
      {"m/tinyllama-1.1b-chat-v1.0.Q8_0.gguf", "Q8_0"},
      {"m/gemma-3-270m-it-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
      {"m/model_IQ4_XS.gguf", "IQ4_XS"},
      {"m/gpt-oss-20b-mxfp4.gguf", "mxfp4"},
      {"m/a-BF16.gguf", "BF16"},
      {"m/big-Q5_K_S-00002-of-00003.gguf", "Q5_K_S"},
      {"m/Q6_K/big-00001-of-00003.gguf", "Q6_K"},
      {"m/Qwen3-0.6B.gguf", ""},
      {"m/queen-quality.gguf", ""},
  };
  for (const auto& [file, quant] : cases) EXPECT_EQ(QuantOf(file), quant) << file;
}

TEST(GgufChoice, ModelsAreFirstPartsAndNothingElse) {
  const TempFolder folder({{"b-Q8_0.gguf", ""},
                           {"a-Q4_0-00001-of-00002.gguf", ""},
                           {"a-Q4_0-00002-of-00002.gguf", ""},
                           {"mmproj-F16.gguf", ""},
                           {"imatrix.gguf", ""},
                           {"config.json", ""}});
  fs::create_directory(folder.path() / "Q6_K");
  folder.Write("Q6_K/c.gguf", "");
  const fs::path& at = folder.path();
  EXPECT_THAT(GgufModelsIn(at), ElementsAre(at / "a-Q4_0-00001-of-00002.gguf", at / "b-Q8_0.gguf"));
  const auto all = GgufModelsIn(at, /*in_folders=*/true);
  EXPECT_THAT(
      all, ElementsAre(at / "Q6_K/c.gguf", at / "a-Q4_0-00001-of-00002.gguf", at / "b-Q8_0.gguf"));
  EXPECT_THAT(GgufWords(all), ElementsAre("Q6_K", "Q4_0", "Q8_0"));
}

TEST(GgufChoice, AWordMeansWhatEndsSo) {
  const std::vector<fs::path> files = {"m/a-Q4_K_M.gguf", "m/a-UD-Q4_K_XL.gguf", "m/a-q8_0.gguf",
                                       "m/b-q8_0.gguf", "m/c.gguf"};
  EXPECT_THAT(GgufCalled("q4_k_m", files), ElementsAre("m/a-Q4_K_M.gguf"));
  EXPECT_THAT(GgufCalled("Q4_K_XL", files), ElementsAre("m/a-UD-Q4_K_XL.gguf"));
  EXPECT_THAT(GgufCalled("UD-Q4_K_XL", files), ElementsAre("m/a-UD-Q4_K_XL.gguf"));
  EXPECT_THAT(GgufCalled("Q8_0", files), ElementsAre("m/a-q8_0.gguf", "m/b-q8_0.gguf"));
  EXPECT_THAT(GgufCalled("b-Q8_0", files), ElementsAre("m/b-q8_0.gguf"));
  EXPECT_THAT(GgufCalled("c.gguf", files), ElementsAre("m/c.gguf"));
  EXPECT_THAT(GgufCalled("K_M", files), ElementsAre("m/a-Q4_K_M.gguf"));
  EXPECT_THAT(GgufCalled("4_K_M", files), IsEmpty());
  EXPECT_THAT(GgufCalled("", files), IsEmpty());
  // Each word means one file.
  for (const std::string& word : GgufWords(files)) {
    EXPECT_EQ(GgufCalled(word, files).size(), 1u) << word;
  }
}

}  // namespace
}  // namespace godwit::gguf_choice_test
