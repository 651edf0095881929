#include "base/problem_list.h"

#include <gtest/gtest.h>

namespace godwit {
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

TEST(ProblemListTest, CountsWhatItDoesNotShow) {
  ProblemList problems;
  for (int i = 0; i < 15; ++i) problems.Add("p{}", i);
  ProblemList others;
  for (int i = 15; i < 45; ++i) others.Add("p{}", i);
  problems.Append(others);
  EXPECT_EQ(problems.count(), 45u);
  const std::string text = problems.Text("m");
  EXPECT_NE(text.find("\n  p19\n  ... and 25 more"), std::string::npos) << text;
  EXPECT_EQ(text.find("p20"), std::string::npos) << text;
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
}  // namespace godwit
