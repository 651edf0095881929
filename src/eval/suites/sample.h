// Samples, the questions of a suite, and the scores of their answers.
//
// A suite is one file with a maker of samples and a scorer, and a line in all_suites.cc. The same
// seed, tokenizer and files give the same samples on every machine, each independent of the others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/suites/prompt_builder.h"

namespace godwit::eval {

// The place of a sample in a suite.
struct SamplePlace {
  int64_t length_tokens = 0;    // the most of prompt and answer together
  std::optional<double> depth;  // of the needle, in % of the text; none: nowhere special
  int64_t index = 0;            // among samples of this length and depth
};

struct TokenSpan {
  int64_t begin, end;
};

struct Sample {
  std::vector<int32_t> prompt;     // framed
  std::vector<TokenSpan> needles;  // tokens of the prompt that the answer needs
  // The tokens before the question. All behind them is the question and the beginning of its answer
  // (PromptBuilder::AppendQuestion).
  int64_t context_tokens = 0;
  std::string question;               // for scorers that need it
  std::vector<std::string> expected;  // at least one
  int64_t max_new_tokens = 0;
  std::vector<std::string> stop;  // strings that end the answer
};

// Throws Error(kInput) with numbers where a sample does not fit into its length.
using SampleMaker = std::function<Sample(const SamplePlace& place)>;

struct SuiteInputs {
  uint64_t seed = 0;
  int64_t max_new_tokens = 0;
  std::vector<std::string> texts;  // of the user's files, to hide needles in
  std::string folder;              // that holds what Suite::data says
  std::string_view task;           // the suite's name
};

// Whether a text of the user hides the needles.
enum class HayText { kNone, kIfAny, kNeeded };

struct Suite {
  std::string_view verb;  // godwit eval VERB
  std::string_view name;
  HayText text;
  const char* data;  // the files that the user's folder must hold, or nullptr
  bool has_depth;
  int64_t max_new_tokens;  // the original's
  // The maker uses `pieces`, which must outlive it.
  SampleMaker (*open)(const SuiteInputs& inputs, const PieceMaker& pieces);
  // The score of an answer, 0 to 1.
  double (*score)(std::string_view answer, const Sample& sample);
};

}  // namespace godwit::eval
