#include "chat/passages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"

namespace godwit::chat::passages_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int32_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

PassagePrompt Cut(std::string_view prompt, const std::vector<std::string>& passages) {
  return CutAtPassages(prompt, passages, Bytes);
}

TEST(CutAtPassagesTest, TellsThePartsApart) {
  const PassagePrompt cut = Cut("<user>ab cd ab ?<bot>", {"ab ", "cd ", "ab "});
  EXPECT_EQ(cut.head, Bytes("<user>"));
  EXPECT_THAT(cut.passages, ElementsAre(Bytes("ab "), Bytes("cd "), Bytes("ab ")));
  EXPECT_EQ(cut.rest, Bytes("?<bot>"));
  // Other words in front that are those of a passage are no passage.
  EXPECT_EQ(Cut("ab <user>ab cd ?", {"ab ", "cd "}).head, Bytes("ab <user>"));
}

TEST(CutAtPassagesTest, RefusesAPromptThatChangesThem) {
  for (const char* prompt : {"<user>ab cd?", "<user>ab  cd ?", "ab cd ?", "<user>cd ab ?"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                        [&] {
                          Cut(prompt, {"ab ", "cd "});
                        }),
                HasSubstr("ask without passages"))
        << prompt;
  }
}

}  // namespace
}  // namespace godwit::chat::passages_test
