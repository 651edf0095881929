#include "tests/pairs.h"

#include <gtest/gtest.h>

#include <string>

namespace godwit::pairs_test {
namespace {

template <size_t N>
void ExpectEveryPair(const std::array<size_t, N>& sizes) {
  const std::set<Combination<N>> chosen = CoveringPairs(sizes);
  for (size_t a = 0; a < N; ++a) {
    for (size_t b = a + 1; b < N; ++b) {
      std::set<std::pair<size_t, size_t>> met;
      for (const Combination<N>& combination : chosen) {
        EXPECT_LT(combination[a], sizes[a]);
        met.insert({combination[a], combination[b]});
      }
      EXPECT_EQ(met.size(), sizes[a] * sizes[b]) << "lists " << a << " and " << b;
    }
  }
}

TEST(CoveringPairs, MeetEachOther) {
  ExpectEveryPair<2>({3, 4});
  ExpectEveryPair<3>({2, 1, 5});
  ExpectEveryPair<4>({4, 5, 3, 6});
  ExpectEveryPair<5>({2, 2, 2, 2, 2});
}

TEST(CoveringPairs, AreFewerThanAll) {
  EXPECT_LE(CoveringPairs<4>({4, 5, 3, 6}).size(), 36u);  // of 360; 30 at least
  EXPECT_LE(CoveringPairs<5>({2, 2, 2, 2, 2}).size(), 8u);
}

TEST(CoveringPairs, OneLongListGivesItself) { EXPECT_EQ(CoveringPairs<3>({1, 7, 1}).size(), 7u); }

TEST(CasesOf, PairsAndRestAreEveryCombinationOnce) {
  const CasesOf cases(std::vector{1, 2, 3}, std::vector<std::string>{"a", "b", "c"},
                      std::vector{'x', 'y', 'z'});
  using Case = std::tuple<int, std::string, char>;
  std::multiset<Case> found;
  for (const Case& one : cases.Pairs()) found.insert(one);
  EXPECT_LT(found.size(), 27u);
  for (const Case& one : cases.Rest()) found.insert(one);
  std::multiset<Case> expected;
  for (const int number : {1, 2, 3}) {
    for (const char* name : {"a", "b", "c"}) {
      for (const char letter : {'x', 'y', 'z'}) expected.insert({number, name, letter});
    }
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace godwit::pairs_test
