// The report of evaluations: cache policies side by side, on the same samples.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace godwit::lab {

// One figure: the mean score of samples under each policy.
struct ComparedRow {
  // The cells of the row that name its samples, by heading. Null is shown as "-", or as "all" in a
  // row that sums up others.
  nlohmann::ordered_json about;
  bool sums_up = false;
  // Whether scores are logarithms. They are shown as e to their mean; differences are shown as
  // factors of the first policy's.
  bool exponential = false;
  std::vector<std::vector<double>> scores = {};  // [policies][samples], each sample at one place
};

class PolicyComparison {
 public:
  // kvs: as in --kv. seed: of the intervals.
  PolicyComparison(std::span<const std::string> kvs, uint64_t seed) : kvs_(kvs), seed_(seed) {}

  // The row of these samples, added behind the others if it is new. It stays where it is.
  ComparedRow& Row(const ComparedRow& like);

  // The scores so far of a row: "passkey, length 4096, depth 50: dense 1.000 of 2, sinks:4+60 0.500
  // of 2". Policies without samples are left out; empty if none has any.
  std::string SoFar(const ComparedRow& row) const;

  // The table. For one policy: means and 95 % intervals. For several: means, and their differences
  // from the first one's with intervals. Long names of policies stand above it, with a number each.
  // Rows without samples are left out. Lines are at most `width` characters long, as in
  // Table::InGroups.
  std::string Text(size_t width) const;
  nlohmann::ordered_json Json() const;

 private:
  std::span<const std::string> kvs_;
  uint64_t seed_;
  std::deque<ComparedRow> rows_;
};

}  // namespace godwit::lab
