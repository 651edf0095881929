// What godwit eval asks of long texts that are made to measure: its flags, and what follows from
// them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/suites/all_suites.h"
#include "lab/compared_options.h"

namespace godwit::lab {

struct SuiteOptions : ComparedOptions {
  std::vector<const eval::Suite*> suites;
  bool tasks_named = false;
  std::vector<int64_t> lengths = {4096};
  std::vector<int64_t> depths = {0, 25, 50, 75, 100};  // none: the suites have no depth
  int64_t samples = 10;
  int64_t max_new_tokens = 0;  // 0: each suite's own
  std::vector<std::string> files;
  std::string folder;
  std::string generated;  // folder of samples that are read, not made
  bool lossy = false;
  bool chat = false;
  std::string template_variables = "{}";
};

// Those of `verb`, with everything that can be refused before the model is read.
SuiteOptions ParseSuiteOptions(std::string_view verb, const std::string& summary,
                               std::span<const std::string> arguments);

// What Comparison and AnswerFile say of it.
std::string HowAsked(const SuiteOptions& options);

}  // namespace godwit::lab
