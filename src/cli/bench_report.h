// What is said about a finished bench: a table for people, JSON and CSV for programs, a chart.
#pragma once

#include <cstdint>
#include <string>

#include "bench/suite.h"

namespace godwit::cli {

struct BenchReport {
  std::string model;    // its folder's name, or its shape's
  std::string weights;  // "bf16"
  std::string kv_type;
  std::string isa;
  int64_t weight_bytes = 0;
  bool fill_kv = false;
  bench::SuiteResult result;
};

std::string BenchText(const BenchReport& report);
std::string BenchJson(const BenchReport& report);
std::string BenchCsv(const BenchReport& report);

// Tokens per second over the depth: a line for each kind of test and number of threads. SVG.
std::string DepthChart(const BenchReport& report);

}  // namespace godwit::cli
