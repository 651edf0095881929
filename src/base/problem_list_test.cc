#include "base/problem_list.h"

#include <gtest/gtest.h>

namespace godwit::problem_list_test {
namespace {

TEST(ProblemListTest, SaysNothingWhenEmpty) {
  ProblemList problems;
  EXPECT_TRUE(problems.empty());
  EXPECT_NO_THROW(problems.ThrowIfAny(ErrorKind::kFormat, "x"));
}

TEST(ProblemListTest, PutsOneOnTheHeadingsLineAndSeveralBelow) {
  ProblemList problems;
  problems.Add("first {}", 1);
  EXPECT_EQ(problems.Text("m"), "m: first 1");
  problems.Add("second");
  EXPECT_EQ(problems.Text("m"), "m: 2 problems\n  first 1\n  second");
}

TEST(ProblemListTest, OfEachKindSomeAreShownAndTheRestIsCounted) {
  ProblemList problems;
  for (int i = 0; i < 45; ++i) {
    problems.Add("missing {}", i);
    if (i % 2 == 0) problems.Add("broken {}", i);
  }
  EXPECT_EQ(problems.count(), 68u);
  const std::string text = problems.Text("m");
  EXPECT_TRUE(text.starts_with("m: 68 problems\n  missing 0\n  missing 1\n")) << text;
  EXPECT_NE(text.find("\n  missing 19\n  ... and 25 more like it\n  broken 0\n"), std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("\n  broken 38\n  ... and 3 more like it")) << text;
  EXPECT_EQ(text.find("missing 20"), std::string::npos) << text;
}

TEST(ProblemListTest, ThrowsWithTheGivenKind) {
  ProblemList problems;
  problems.Add("broken");
  try {
    problems.ThrowIfAny(ErrorKind::kFormat, "file");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFormat);
    EXPECT_STREQ(error.what(), "file: broken");
  }
}

}  // namespace
}  // namespace godwit::problem_list_test
