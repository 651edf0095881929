// What the suites of `godwit eval` print: policies side by side on the same samples.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace godwit::cli {

// The samples of one task, length and depth. None as depth: of no depth, or of all.
struct SuiteRow {
  std::string task;
  int64_t length_tokens = 0;
  std::optional<double> depth;
  std::vector<std::vector<double>> scores;  // [policies][samples], each sample at the same place
};

// Where a task has several depths, a row of all of them follows; seed: of the intervals.
std::string SuiteText(std::span<const std::string> kvs, std::span<const SuiteRow> rows,
                      uint64_t seed);
nlohmann::ordered_json SuiteJson(std::span<const std::string> kvs, std::span<const SuiteRow> rows,
                                 uint64_t seed);

}  // namespace godwit::cli
