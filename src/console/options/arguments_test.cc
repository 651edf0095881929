#include "console/options/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/test_support.h"

namespace godwit::console::arguments_test {
namespace {

using testing::ElementsAre;

// The arguments in the form "-ub=64", or "--json" alone.
std::vector<std::string> Split(const std::vector<std::string>& arguments) {
  const auto kind = [](std::string_view name) {
    if (name == "--json" || name == "-e") return FlagKind::kSwitch;
    if (name == "-l") return FlagKind::kWithValues;
    const bool known = name == "-ub" || name == "-n" || name == "-p" || name == "--prompt";
    return known ? FlagKind::kWithValue : FlagKind::kUnknown;
  };
  std::vector<std::string> flags;
  for (const GivenFlag& flag : SplitArguments(arguments, kind, [](const std::string& argument) {
         throw std::runtime_error(argument);
       })) {
    flags.push_back(flag.name + (flag.value ? "=" + *flag.value : ""));
  }
  return flags;
}

std::string Refusal(const std::vector<std::string>& arguments) {
  return ErrorOf([&] { Split(arguments); }).what();
}

TEST(Arguments, TakeTheirValueInEveryNotation) {
  EXPECT_THAT(Split({"-ub", "64", "-ub=64", "-ub64", "-n5", "-n-1", "-n", "-1", "-n=3"}),
              ElementsAre("-ub=64", "-ub=64", "-ub=64", "-n=5", "-n=-1", "-n=-1", "-n=3"));
  EXPECT_THAT(Split({"--prompt", "Hello", "--prompt=a=b", "--prompt=", "-p=", "-p", ""}),
              ElementsAre("--prompt=Hello", "--prompt=a=b", "--prompt=", "-p=", "-p="));
  EXPECT_THAT(Split({"--json", "-e", "--json=0"}), ElementsAre("--json", "-e", "--json=0"));
}

TEST(Arguments, ValuesMayLookLikeFlagsThatThereAreNot) {
  EXPECT_THAT(Split({"-p", "--", "-p", "-", "-p", "--zebra", "-p", "-x=1"}),
              ElementsAre("-p=--", "-p=-", "-p=--zebra", "-p=-x=1"));
}

TEST(Arguments, ListsEndAtTheNextFlag) {
  EXPECT_THAT(Split({"-l", "a", "b", "-", "-n", "5"}), ElementsAre("-l=a", "-l=b", "-l=-", "-n=5"));
  EXPECT_THROW(Split({"-l=a", "b"}), std::runtime_error);
  EXPECT_THROW(Split({"-l", "a", "-x"}), std::runtime_error);
}

TEST(Arguments, AFlagIsNoValueOfTheOneBefore) {
  EXPECT_EQ(Refusal({"-p", "--json"}),
            "-p needs a value, found the flag --json (write -p=--json if that is the value)");
  EXPECT_THAT(Refusal({"-p", "-n=5", "x"}), testing::HasSubstr("found the flag -n "));
  EXPECT_THAT(Split({"-p=--json"}), ElementsAre("-p=--json"));
}

TEST(Arguments, RefusesAMissingValue) { EXPECT_EQ(Refusal({"-e", "-p"}), "-p needs a value"); }

TEST(Arguments, RefusesWhatIsNoFlag) {
  for (const std::string argument :
       {"-ngl", "-pHello", "-e1", "--unknown=1", "hello", "", "-", "--", "-5", "=", "--json5"}) {
    EXPECT_THROW(Split({argument, "1"}), std::runtime_error) << argument;
  }
}

}  // namespace
}  // namespace godwit::console::arguments_test
