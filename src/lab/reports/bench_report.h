// What is said about a finished bench: a table for people, JSON and CSV for programs.
#pragma once

#include <cstdint>
#include <string>

#include "bench/suite.h"

namespace godwit::lab {

struct BenchReport {
  std::string model;    // its folder's name, or its shape's
  std::string weights;  // "int8 (head bf16)"
  std::string kv_type;
  std::string isa;
  int64_t weight_bytes = 0;
  bool fill_kv = false;
  double layers = 0;
  bench::SuiteResult result;
};

std::string BenchText(const BenchReport& report);
std::string BenchJson(const BenchReport& report);
std::string BenchCsv(const BenchReport& report);

}  // namespace godwit::lab
