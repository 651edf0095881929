// Covering pairs: so few combinations of some lists that every value of a list meets every value of
// every other one. They find a fault that one value causes, or two together. The other
// combinations, in which only three values together may tell more, are left to ./check --full.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace godwit {

// For each list the index of the chosen value.
template <size_t N>
using Combination = std::array<size_t, N>;

// Every combination of lists of these sizes, the last one counting fastest.
template <size_t N>
std::vector<Combination<N>> AllCombinations(const std::array<size_t, N>& sizes) {
  std::vector<Combination<N>> all = {{}};
  for (size_t list = 0; list < N; ++list) {
    std::vector<Combination<N>> longer;
    for (Combination<N> combination : all) {
      for (combination[list] = 0; combination[list] < sizes[list]; ++combination[list]) {
        longer.push_back(combination);
      }
    }
    all = std::move(longer);
  }
  return all;
}

// Combinations that cover every pair. Each is the one with the most missing pairs, and the first
// among equals, so that they are the same on every run.
template <size_t N>
std::set<Combination<N>> CoveringPairs(const std::array<size_t, N>& sizes) {
  using Pair = std::array<size_t, 4>;  // two lists, and a value from each
  std::vector<std::pair<Combination<N>, std::set<Pair>>> candidates;
  std::set<Pair> missing;
  for (const Combination<N>& combination : AllCombinations(sizes)) {
    std::set<Pair> pairs;
    for (size_t a = 0; a < N; ++a) {
      for (size_t b = a + 1; b < N; ++b) pairs.insert({a, b, combination[a], combination[b]});
    }
    missing.insert(pairs.begin(), pairs.end());
    candidates.emplace_back(combination, std::move(pairs));
  }
  std::set<Combination<N>> chosen;
  while (!missing.empty()) {
    const Combination<N>* best = nullptr;
    size_t most = 0;
    for (const auto& [combination, pairs] : candidates) {
      size_t found = 0;
      for (const Pair& pair : pairs) found += missing.count(pair);
      if (found <= most) continue;
      best = &combination;
      most = found;
    }
    chosen.insert(*best);
    for (size_t a = 0; a < N; ++a) {
      for (size_t b = a + 1; b < N; ++b) missing.erase({a, b, (*best)[a], (*best)[b]});
    }
  }
  return chosen;
}

// Lists whose combinations are cases of a parameterized suite:
//
//   const CasesOf kCases(std::vector{...}, std::vector{...}, ...);
//   INSTANTIATE_TEST_SUITE_P(Pairs, Suite, testing::ValuesIn(kCases.Pairs()), NameOf);
//   INSTANTIATE_TEST_SUITE_P(FULL_Rest, Suite, testing::ValuesIn(kCases.Rest()), NameOf);
template <typename... Values>
class CasesOf {
 public:
  using Case = std::tuple<Values...>;

  explicit CasesOf(std::vector<Values>... lists) : lists_(std::move(lists)...) {}

  std::vector<Case> Pairs() const { return Cases(/*pairs=*/true); }
  // Every combination that is not in Pairs().
  std::vector<Case> Rest() const { return Cases(/*pairs=*/false); }

 private:
  std::vector<Case> Cases(bool pairs) const {
    return Cases(pairs, std::index_sequence_for<Values...>());
  }

  template <size_t... list>
  std::vector<Case> Cases(bool pairs, std::index_sequence<list...>) const {
    const std::array<size_t, sizeof...(Values)> sizes = {std::get<list>(lists_).size()...};
    const auto covering = CoveringPairs(sizes);
    std::vector<Case> cases;
    for (const auto& combination : AllCombinations(sizes)) {
      if (covering.contains(combination) != pairs) continue;
      cases.emplace_back(std::get<list>(lists_)[combination[list]]...);
    }
    return cases;
  }

  std::tuple<std::vector<Values>...> lists_;
};

}  // namespace godwit
