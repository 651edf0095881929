#include "chat/files_in_message.h"

#include <gtest/gtest.h>

namespace godwit::chat::files_in_message_test {
namespace {

std::vector<int32_t> TokenPerByte(std::string_view text) { return {text.begin(), text.end()}; }

TEST(FilesInMessage, HaveTheirNames) {
  EXPECT_EQ(FileInMessage("a.txt", "one\ntwo"), "<file name=\"a.txt\">\none\ntwo\n</file>\n\n");
  EXPECT_EQ(FileInMessage("a.txt", "one\n"), "<file name=\"a.txt\">\none\n</file>\n\n");
  EXPECT_EQ(FileInMessage("a\"\nb", ""), "<file name=\"a''b\">\n\n</file>\n\n");
}

TEST(TokensFrom, CountsTheQuestionAndItsFrame) {
  EXPECT_EQ(TokensFrom("Who?", "<u>Who? is a book.\nWho?</u>", TokenPerByte), 8);
  EXPECT_EQ(TokensFrom("  Who?\n", "<u>Who?</u>", TokenPerByte), 8);
  EXPECT_EQ(TokensFrom("Who?", "<u>WHO?</u>", TokenPerByte), std::nullopt);
  EXPECT_EQ(TokensFrom(" \n", "<u></u>", TokenPerByte), std::nullopt);
}

}  // namespace
}  // namespace godwit::chat::files_in_message_test
