// What the evaluations that compare cache policies share: the flags, and how they are asked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options/model_options.h"
#include "console/terminal/result_files.h"
#include "godwit/engine.h"

namespace godwit::lab {

struct ComparedOptions {
  cli::ModelOptions model;
  SessionOptions session;
  std::vector<std::string> kvs;  // once parsed, one or more
  int64_t query_tokens = GenerateOptions().query_tokens;
  uint64_t seed = 0;
  int64_t show = 0;                   // print so many questions, and ask nothing
  std::optional<std::string> output;  // the AnswerFile
  bool json = false;
};

// Behind what an evaluation says of itself in its help.
inline constexpr const char* kComparesPolicies =
    " Several --kv are compared on the same samples, with the intervals in which their scores and "
    "differences lie with 95 % probability.";

void AddSeedFlag(console::CommandLine& line, ComparedOptions& options, const std::string& help);

// shown: what --show prints, "the prompts of the first N samples". takes_recompute: as AddKvFlags
// has it.
void AddComparedFlags(console::CommandLine& line, ComparedOptions& options,
                      const std::string& shown, bool takes_recompute = false);

// After Parse: the model and the policies are chosen. Throws Error(kInput) for a policy that is
// named twice, and as CheckResultFiles does; inputs: what is read besides the model.
void FinishCompared(ComparedOptions& options, std::vector<console::NamedFile> inputs);

Session NewSession(const Engine& engine, const ComparedOptions& options, const std::string& kv);

// What answers depend on besides the prompt and --kv, in words.
std::string HowAsked(const ComparedOptions& options);

// Of a prompt, for an AnswerFile.
std::string Fingerprint(std::span<const int32_t> tokens, int64_t max_new_tokens = 0);

}  // namespace godwit::lab
