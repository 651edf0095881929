#include "eval/suites/babi_stories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::eval::babi_stories_test {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(BabiTest, EveryQuestionIsAskedByItself) {
  const TempFolder folder;
  const auto questions = ReadBabi(folder.Write("qa1_x_test.txt",
                                               "1 John went to the hallway.\n"
                                               "2 Where is John? \thallway\t1\n"
                                               "3 Mary left.\n"
                                               "4 Where is John? \thallway\t3 1\n"
                                               "1 Sandra slept.\n"
                                               "2 Who slept?\tSandra\t1\n"));
  ASSERT_EQ(questions.size(), 3u);
  EXPECT_THAT(questions[1].facts, ElementsAre("John went to the hallway.", "Mary left."));
  EXPECT_THAT(questions[1].supporting, ElementsAre(1, 0));
  EXPECT_EQ(questions[1].question, "Where is John?");
  EXPECT_EQ(questions[1].answer, "hallway");
  EXPECT_THAT(questions[2].facts, ElementsAre("Sandra slept."));
}

TEST(BabiTest, BrokenLinesAreNamed) {
  const auto broken = [](std::string_view text) {
    const TempFolder folder;
    const auto file = folder.Write("qa1.txt", text);
    return ErrorOf(ErrorKind::kFormat, [&] { ReadBabi(file); });
  };
  EXPECT_THAT(broken("1 A.\nB.\n"), HasSubstr("qa1.txt:2: expected a number and a sentence"));
  EXPECT_THAT(broken("1 A.\n2 Q?\ta\t7\n"), HasSubstr("qa1.txt:2: expected the numbers of facts"));
  EXPECT_THAT(broken("1 A.\n2 Q?\ta\n"), HasSubstr("qa1.txt:2: expected "));
  EXPECT_THAT(broken("1 A.\n"), HasSubstr("expected a question, found none"));
}

TEST(BabiTest, TheFileToTrainOnComesFirst) {
  const TempFolder folder(
      {{"qa1_x_test.txt", ""}, {"qa1_x_train.txt", ""}, {"qa2_x_test.txt", ""}});
  EXPECT_THAT(BabiFile(folder.path(), "qa1").string(), EndsWith("qa1_x_train.txt"));
  EXPECT_THAT(BabiFile(folder.path(), "qa2").string(), EndsWith("qa2_x_test.txt"));
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { BabiFile(folder.path(), "qa3"); }),
              HasSubstr("expected qa3_..._train.txt or qa3_..._test.txt"));
}

}  // namespace
}  // namespace godwit::eval::babi_stories_test
