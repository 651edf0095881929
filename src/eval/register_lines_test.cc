#include "eval/register_lines.h"

#include <gtest/gtest.h>

#include <set>

namespace godwit::eval::register_lines_test {
namespace {

// The lines are spelled as in the paper's figure.
TEST(RegisterLinesTest, Text) {
  EXPECT_EQ(RegisterLine(0, 8806), "The REGISTER_CONTENT in line 0 is <8806>\n");
  EXPECT_EQ(RegisterQuery(17), "Query: The REGISTER_CONTENT in line 17 is");
  EXPECT_EQ(RegisterAnswer(24879), " <24879>");
  EXPECT_TRUE(kRegisterHeader.ends_with("remember.\n"));
}

TEST(RegisterLinesTest, ValuesAreAFunctionOfSeedSampleAndLine) {
  std::set<int64_t> values;
  int64_t largest = 0;
  for (int64_t line = 0; line < 5000; ++line) {
    const int64_t value = RegisterValue(0, 0, line);
    EXPECT_EQ(value, RegisterValue(0, 0, line));
    EXPECT_GE(value, 1);
    EXPECT_LE(value, 50000);
    values.insert(value);
    largest = std::max(largest, value);
  }
  // The expected number of distinct values is 50000 (1 - e^-0.1).
  EXPECT_NEAR(static_cast<double>(values.size()), 4758, 100);
  EXPECT_GT(largest, 49800);
  EXPECT_NE(RegisterValue(0, 0, 0), RegisterValue(1, 0, 0));
  EXPECT_NE(RegisterValue(0, 0, 0), RegisterValue(0, 1, 0));
}

TEST(RegisterLinesTest, TheFirstNumberCounts) {
  for (const char* right : {" <8806>", "8806", " is 8806.", "<08806>", "8806 or 12", "<8806"}) {
    EXPECT_TRUE(AnswersRegister(right, 8806)) << right;
  }
  for (const char* wrong : {"", " <", "12 or 8806", "<88060>", "<880>", "8,806", "x", "0"}) {
    EXPECT_FALSE(AnswersRegister(wrong, 8806)) << wrong;
  }
}

}  // namespace
}  // namespace godwit::eval::register_lines_test
