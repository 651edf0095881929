// What evaluations print: cache policies side by side, on the same samples.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace godwit::lab {

// One figure: the mean of what samples have scored under each policy.
struct ComparedRow {
  // Which samples: the cells under the headings of these names. Null is "-", or, in a row that sums
  // up others, "all".
  nlohmann::ordered_json about;
  bool sums_up = false;
  // Scores are logarithms: shown as e to their mean, and how many times the first policy's.
  bool exponential = false;
  std::vector<std::vector<double>> scores = {};  // [policies][samples], each sample at one place
};

class Comparison {
 public:
  // kvs: as --kv has them; seed: of the intervals.
  Comparison(std::span<const std::string> kvs, uint64_t seed) : kvs_(kvs), seed_(seed) {}

  // That of these samples, which stands behind the ones asked for before. It stays where it is.
  ComparedRow& Row(const ComparedRow& like);

  // What is known of a row before all are: "passkey, length 4096, depth 50: dense 1.000 of 2,
  // sinks:4+60 0.500 of 2". Policies without samples are left out; empty where none has any.
  std::string SoFar(const ComparedRow& row) const;

  // One policy: mean and 95 % interval. Several: the means, and by how much they differ from the
  // first one's, with the interval of that. Rows without samples are left out. Lines are at most
  // `width` characters long, as Table::InGroups has it.
  std::string Text(size_t width) const;
  nlohmann::ordered_json Json() const;

 private:
  std::span<const std::string> kvs_;
  uint64_t seed_;
  std::deque<ComparedRow> rows_;
};

}  // namespace godwit::lab
