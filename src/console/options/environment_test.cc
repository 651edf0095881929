#include "console/options/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace godwit::console::environment_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Not;

TEST(Environment, FindsWhatIsGiven) {
  setenv("GODWIT_TMEP", "0", 1);
  setenv("GODWIT_TOP_K", "5", 1);
  setenv("GODWIT_EMPTY", "", 1);
  EXPECT_THAT(GivenVariables(), IsSupersetOf({"GODWIT_TMEP", "GODWIT_TOP_K"}));
  EXPECT_THAT(GivenVariables(), Not(Contains("GODWIT_EMPTY")));
  for (const char* name : {"GODWIT_TMEP", "GODWIT_TOP_K", "GODWIT_EMPTY"}) unsetenv(name);
}

TEST(Environment, AVerbsOwnVariableNamesIt) {
  EXPECT_EQ(VariableName("--top-k"), "GODWIT_TOP_K");
  EXPECT_EQ(VariableName("--seq-len", "eval stream"), "GODWIT_EVAL_STREAM_SEQ_LEN");
  std::vector<CommandPage> pages(1);
  pages[0].name = "run";
  pages[0].flags.push_back({.names = {"--samples"}, .is_verbs_own = true});
  const std::vector<std::string> given = {"GODWIT_RUN_SAMPLES", "GODWIT_SAMPLES"};
  EXPECT_THAT(
      DescribeUnknownVariables(given, pages),
      ElementsAre(testing::StartsWith("the environment variable GODWIT_SAMPLES is ignored")));
}

TEST(Environment, SaysWhichVariablesNoFlagHas) {
  std::vector<CommandPage> pages(2);
  pages[0].flags.push_back({.names = {"-t", "--threads"}});
  pages[1].flags.push_back({.names = {"--temp", "--temperature"}});
  const std::vector<std::string> given = {"GODWIT_QQQ", "GODWIT_TEMPERATURE", "GODWIT_THREADS",
                                          "GODWIT_TMEP"};
  EXPECT_THAT(DescribeUnknownVariables(given, pages),
              ElementsAre("the environment variable GODWIT_QQQ is ignored: there is no such flag",
                          "the environment variable GODWIT_TMEP is ignored: there is no such flag; "
                          "did you mean GODWIT_TEMP?"));
}

}  // namespace
}  // namespace godwit::console::environment_test
