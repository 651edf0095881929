// The shared parts of evaluations that compare cache policies: the flags, and the way of asking.
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
  std::vector<std::string> kvs;  // one or more, once parsed
  int64_t query_tokens = 0;      // as in GenerateOptions; 0: those of each question
  uint64_t seed = 0;
  int64_t show = 0;                   // questions to print; then nothing is asked
  std::optional<std::string> output;  // the AnswerFile
  bool json = false;
};

// The text behind an evaluation's own help.
inline constexpr const char* kComparesPolicies =
    " Several --kv are compared on the same samples; scores and differences have 95 % confidence "
    "intervals.";

void AddSeedFlag(console::CommandLine& line, ComparedOptions& options, const std::string& help);

// shown: what --show prints, "the prompts of the first N samples". takes_recompute: as in
// AddKvFlags. asked: the question, which is asked apart from what stands before it.
void AddComparedFlags(console::CommandLine& line, ComparedOptions& options,
                      const std::string& shown, const std::string& asked,
                      bool takes_recompute = false);

// Chooses the model and the policies, after Parse. inputs: the files that are read besides the
// model. Throws Error(kInput) for a policy that is named twice, and as CheckResultFiles does.
void FinishCompared(ComparedOptions& options, std::vector<console::NamedFile> inputs);

Session NewSession(const Engine& engine, const ComparedOptions& options, const std::string& kv);

// Does what --show and --json say: prints questions, or asks and prints the outcome. Returns the
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

// The settings, in words, that answers depend on besides the prompt and --kv.
std::string SettingsText(const ComparedOptions& options);

// The fingerprint of a prompt, for an AnswerFile.
std::string Fingerprint(std::span<const int32_t> tokens, int64_t max_new_tokens = 0);

}  // namespace godwit::lab
