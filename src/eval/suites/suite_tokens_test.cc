// A sample made of pieces has the tokens of its whole text, never more than its length, with the
// tokenizers of real models.

#include <gtest/gtest.h>

#include <memory>

#include "eval/suites/all_suites.h"
#include "text/load_tokenizer.h"
#include "text/test_data.h"

namespace godwit::eval::suite_tokens_test {
namespace {

constexpr int64_t kLength = 3500;

std::string Essay() {
  std::string text;
  for (int i = 0; i < 900; ++i) text += fmt::format("Day {} went by, as they do. ", i);
  return text;
}

void ExpectTokensOfText(const std::filesystem::path& folder, ChatRender chat = {}) {
  SCOPED_TRACE(folder.string());
  const auto tokenizer = LoadTokenizer(folder);
  const StreamCoder coder{
      .frame = {},
      .encode = [&](std::string_view text) { return tokenizer->Encode(text, false); },
      .decode = {}};
  const PieceMaker pieces(coder, chat);
  for (const char* verb : {"passkey", "needle", "kv-retrieval", "lines", "ruler"}) {
    for (const Suite* suite : SuitesOf(verb)) {
      if (suite->data != nullptr) continue;
      SuiteInputs inputs{.max_new_tokens = suite->max_new_tokens, .task = suite->name};
      if (suite->text == HayText::kNeeded) inputs.texts = {Essay()};
      const Sample sample = suite->open(inputs, pieces)({.length_tokens = kLength, .depth = 50});
      EXPECT_LE(std::ssize(sample.prompt) + suite->max_new_tokens, kLength) << suite->name;
      const std::string text = tokenizer->Decode(sample.prompt, /*skip_special_tokens=*/false);
      EXPECT_EQ(sample.prompt, coder.encode(text)) << suite->name;
    }
  }
}

std::string Chat(const std::string& message) { return "[user]\n" + message + "\n[model]\n\n"; }

TEST(SuiteTokensTest, OwnTokenizers) {
  for (const char* name : {"byte_level", "sentencepiece"}) {
    ExpectTokensOfText(TestData() / "tokenizers" / name);
    ExpectTokensOfText(TestData() / "tokenizers" / name, Chat);
  }
}

TEST(SuiteTokensTest, RELEASE_RealTokenizers) {
  if (!std::filesystem::exists(SharedTokenizers())) GTEST_SKIP() << "no tokenizers of models here";
  for (const char* name : {"gpt2", "llama-2", "llama-3.1", "qwen2.5", "phi-3-mini", "falcon"}) {
    ExpectTokensOfText(SharedTokenizers() / name);
    ExpectTokensOfText(SharedTokenizers() / name, Chat);
  }
}

}  // namespace
}  // namespace godwit::eval::suite_tokens_test
