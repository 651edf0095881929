#include "console/options/foreign_flags.h"

#include <gtest/gtest.h>

#include <set>

namespace godwit::console::foreign_flags_test {
namespace {

std::optional<std::string_view> About(std::string_view name,
                                      const std::set<std::string_view>& ours) {
  return AboutForeignFlag(name, [&](std::string_view flag) { return ours.contains(flag); });
}

TEST(ForeignFlags, AreExplainedByWhatTheVerbHas) {
  EXPECT_EQ(About("-v", {"--log-json", "--json"}),
            "every request is logged; --log-json logs it as a line of JSON");
  EXPECT_EQ(About("--verbose", {}),
            "there is no further output; godwit --version prints the version");
  EXPECT_EQ(About("--api-key", {"--api-key-file"}),
            "--api-key-file reads keys from a file, so that no list of processes shows them");
  EXPECT_EQ(About("--api-key", {}), std::nullopt);
  EXPECT_EQ(About("--zebra", {}), std::nullopt);
}

TEST(ForeignFlags, FlagsWithoutReplacementAreExplainedEverywhere) {
  for (const char* flag : {"-ngl", "--alias", "--lora", "--rope-scale", "--no-display-prompt",
                           "-cnv", "-sys", "-v", "--jinja"}) {
    EXPECT_TRUE(About(flag, {})) << flag;
  }
}

}  // namespace
}  // namespace godwit::console::foreign_flags_test
