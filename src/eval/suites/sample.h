// What a suite asks: samples, and how their answers are scored.
//
// A suite is one file: a maker of samples and a scorer, and a line in all_suites.cc. The same seed,
// tokenizer and files give the same samples on every machine, one independent of the others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/suites/prompt_builder.h"

namespace godwit::eval {

// Which sample of a suite.
struct SamplePlace {
  int64_t length_tokens = 0;    // that prompt and answer take together, at most
  std::optional<double> depth;  // where the needle stands, in % of the text; none: nowhere special
  int64_t index = 0;            // of those of this length and depth
};

struct TokenSpan {
  int64_t begin, end;
};

struct Sample {
  std::vector<int32_t> prompt;        // framed
  std::vector<TokenSpan> needles;     // what the answer takes, in the prompt
  int64_t shared_tokens = 0;          // with which the prompts of all depths begin; 0: none
  std::string question;               // for scorers that look at it
  std::vector<std::string> expected;  // at least one
  int64_t max_new_tokens = 0;
  std::vector<std::string> stop;  // where the answer ends
};

// Throws Error(kInput) with numbers where a sample does not fit into its length.
using SampleMaker = std::function<Sample(const SamplePlace& place)>;

struct SuiteInputs {
  uint64_t seed = 0;
  int64_t max_new_tokens = 0;
  std::vector<std::string> texts;  // of the user's files: what the needles are hidden in
  std::string folder;              // with what Suite::data says
  std::string_view task;           // the suite's name
};

// Whether a text of the user hides the needles.
enum class HayText { kNone, kIfAny, kNeeded };

struct Suite {
  std::string_view verb;  // godwit eval VERB
  std::string_view name;
  HayText text;
  const char* data;  // what a folder of the user has to hold, or nullptr
  bool has_depth;
  int64_t max_new_tokens;  // the original's
  // The maker uses `pieces`, which must outlive it.
  SampleMaker (*open)(const SuiteInputs& inputs, const PieceMaker& pieces);
  // 0 to 1.
  double (*score)(std::string_view answer, const Sample& sample);
};

}  // namespace godwit::eval
