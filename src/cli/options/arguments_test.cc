#include "cli/options/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "godwit/error.h"

namespace godwit::cli {
namespace {

using testing::ElementsAre;

std::vector<std::string> Rewrite(const std::vector<std::string>& arguments) {
  return RewriteArguments(
      arguments, {{"-ub", "--ubatch-size"}, {"-sys", "--system"}},
      [](std::string_view flag) {
        return flag == "--ubatch-size" || flag == "--system" || flag == "--prompt" || flag == "-p";
      },
      [](const std::string& flag) { throw std::runtime_error(flag); });
}

TEST(Arguments, GivesShortFlagsOfSeveralLettersTheirLongName) {
  EXPECT_THAT(Rewrite({"-ub", "64", "-sys", "Be brief."}),
              ElementsAre("--ubatch-size", "64", "--system", "Be brief."));
}

TEST(Arguments, LeavesValuesAlone) {
  EXPECT_THAT(Rewrite({"-p", "-ub", "-ub", "-p"}), ElementsAre("-p", "-ub", "--ubatch-size", "-p"));
  EXPECT_THAT(Rewrite({"-p", "--prompt=x"}), ElementsAre("-p", "--prompt=x"));
  EXPECT_THAT(Rewrite({"--json", "-ub", "7"}), ElementsAre("--json", "--ubatch-size", "7"));
}

TEST(Arguments, SplitsAtTheFirstEqualsSign) {
  EXPECT_THAT(Rewrite({"--prompt=a=b", "--prompt=", "-n"}),
              ElementsAre("--prompt", "a=b", "--prompt", "", "-n"));
  EXPECT_THAT(Rewrite({"--unknown=1", "-n5", "-n-1"}), ElementsAre("--unknown=1", "-n5", "-n-1"));
}

TEST(Arguments, EndsAtTwoDashes) {
  EXPECT_THAT(Rewrite({"--", "-ub", "--prompt=x"}), ElementsAre("--", "-ub", "--prompt=x"));
  EXPECT_THAT(Rewrite({"-p", "--", "-ub", "1"}), ElementsAre("-p", "--", "--ubatch-size", "1"));
}

TEST(Arguments, RefusesOtherShortFlagsOfSeveralLetters) {
  for (const std::string flag : {"-ngl", "-p=x", "-pHello"}) {
    EXPECT_THROW(Rewrite({flag, "1"}), std::runtime_error) << flag;
  }
}

TEST(Arguments, RefusesAMissingValue) { EXPECT_THROW(Rewrite({"-p"}), Error); }

}  // namespace
}  // namespace godwit::cli
