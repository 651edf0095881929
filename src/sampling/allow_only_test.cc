#include "sampling/allow_only.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace godwit::allow_only_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(AllowOnly, TakesOutWhatHasNoBit) {
  std::vector<float> logits(70, 1);
  const std::vector<uint32_t> allowed = {0x80000001, 0x00000002, 0x00000020};
  AllowOnly(allowed, logits);
  std::vector<size_t> left;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == 1) left.push_back(i);
  }
  EXPECT_THAT(left, ElementsAre(0, 31, 33, 69));
}

TEST(AllowOnly, TokensBeyondTheWordsMayNotCome) {
  std::vector<float> logits(64, 1);
  AllowOnly(std::vector<uint32_t>{0xffffffff}, logits);
  EXPECT_THAT(std::span(logits).first(32), Each(1));
  EXPECT_THAT(std::span(logits).last(32), Each(-INFINITY));
}

}  // namespace
}  // namespace godwit::allow_only_test
