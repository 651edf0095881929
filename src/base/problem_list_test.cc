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

TEST(ProblemListTest, RepeatedKindShowsTheFirstAndCountsTheRest) {
  ProblemList problems;
  for (int i = 0; i < 45; ++i) {
    problems.Add("missing {}", i);
    if (i % 2 == 0) problems.Add("broken {}", i);
    if (i % 20 == 0) problems.Add("odd {}", i);
  }
  EXPECT_EQ(problems.count(), 71u);
  EXPECT_EQ(problems.Text("m"),
            "m: 71 problems\n  missing 0, and 44 more like it\n  broken 0, and 22 more like it\n"
            "  odd 0\n  odd 20\n  odd 40");
}

TEST(ProblemListTest, FirstKindsAreShownAndTheRestCounted) {
  ProblemList problems;
  problems.Add("a");
  problems.Add("b");
  problems.Add("c");
  problems.Add("d");
  problems.Add("e");
  problems.Add("f");
  problems.Add("g");
  problems.Add("h");
  problems.Add("i");
  problems.Add("j");
  EXPECT_EQ(problems.Text("m"),
            "m: 10 problems\n  a\n  b\n  c\n  d\n  e\n  f\n  g\n  h\n  and 2 of other kinds");
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
