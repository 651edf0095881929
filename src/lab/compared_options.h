// What the evaluations that compare cache policies share: the flags, and how they are asked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options/model_options.h"
#include "console/exit_code.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
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

// Does as --show and --json say: prints questions, or asks and prints what came of it. Returns the
// exit code. Run has Show(), Ask(), Text() and Report(), which is JSON.
template <typename Run>
int ShowOrAsk(Run& run, const ComparedOptions& options) {
  if (options.show > 0) {
    run.Show();
    return console::kExitOk;
  }
  run.Ask();
  if (options.json) {
    console::WriteJson(run.Report());
  } else {
    console::WriteOutput(run.Text());
  }
  return console::kExitOk;
}

// What answers depend on besides the prompt and --kv, in words.
std::string HowAsked(const ComparedOptions& options);

// Of a prompt, for an AnswerFile.
std::string Fingerprint(std::span<const int32_t> tokens, int64_t max_new_tokens = 0);

}  // namespace godwit::lab
