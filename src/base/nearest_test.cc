#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace godwit::nearest_test {
namespace {

const std::vector<std::string> kNames = {"--temp", "--top-k", "--top-p", "--threads", "-n"};

TEST(Nearest, ForgivesTypingMistakes) {
  EXPECT_EQ(Nearest("--tmep", kNames), "--temp");
  EXPECT_EQ(Nearest("--thread", kNames), "--threads");
  EXPECT_EQ(Nearest("--topk", kNames), "--top-k");
}

TEST(Nearest, IgnoresTheCase) {
  EXPECT_EQ(Nearest("--TEMP", kNames), "--temp");
  EXPECT_EQ(Nearest("-N", kNames), "-n");
}

TEST(Nearest, DistantNamesAreNotSuggested) {
  EXPECT_EQ(Nearest("--zebra", kNames), std::nullopt);
  EXPECT_EQ(Nearest("", kNames), std::nullopt);
  EXPECT_EQ(Nearest("-", kNames), "-n");
  EXPECT_EQ(Nearest(std::string(1000000, 'x'), kNames), std::nullopt);
}

}  // namespace
}  // namespace godwit::nearest_test
