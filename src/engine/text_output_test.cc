#include "engine/text_output.h"

#include <gtest/gtest.h>

#include "text/fake_tokenizer.h"

namespace godwit::text_output_test {
namespace {

constexpr int32_t kBos = FakeTokenizer::kBos, kEos = FakeTokenizer::kEos;

TEST(TextOutput, SpellsOutTheSpecialTokensItIsTold) {
  const FakeTokenizer tokenizer;
  const std::vector<std::string> marks = {"</s>", "a", "<none>"};
  TextOutput output(&tokenizer, {}, {}, marks, nullptr);
  std::string text;
  // A character in two halves, whose second half never comes.
  for (const int32_t token : {int32_t{'a'}, kBos, int32_t{0xC3}, kEos, int32_t{'b'}}) {
    text += output.Push(token);
  }
  EXPECT_EQ(text + output.Finish(), "a\uFFFD</s>b");
}

}  // namespace
}  // namespace godwit::text_output_test
