// The flags of godwit eval for suites of long texts, and the values that follow from them.
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
  std::string anchor_tokens;  // of eval::ForeignAnchor; empty: a star's anchor is the text's own
  std::string generated;      // folder of samples that are read, not made
  bool lossy = false;
  bool chat = false;
  std::string template_variables = "{}";
};

// The options of `verb`. Everything that can be refused before the model is read is refused here.
SuiteOptions ParseSuiteOptions(std::string_view verb, const std::string& summary,
                               std::span<const std::string> arguments);

// The settings, in words, that PolicyComparison and AnswerFile show.
std::string SettingsText(const SuiteOptions& options);

}  // namespace godwit::lab
