// Texts that are scored token by token: what `godwit perplexity` and `godwit eval quant` share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "console/options/command_line.h"
#include "console/terminal/result_files.h"
#include "godwit/engine.h"

namespace godwit::lab {

struct ScoredFiles {
  std::vector<std::string> files;
  bool reset = false;  // each file is a text of its own
  bool lossy = false;  // as TextInput's
};

void AddScoredFilesFlags(console::CommandLine& line,
                         ScoredFiles& options);  // --file, --reset, --lossy

// Their contents, "-" being standard input. Throws Error(kInput) for an empty one.
std::vector<std::string> ReadFiles(const ScoredFiles& options);

// `others`, and those files: what CheckResultFiles protects.
std::vector<console::NamedFile> Inputs(const ScoredFiles& options,
                                       std::vector<console::NamedFile> others);

// One list of ids for every text that begins anew; only as many as are needed where no more than
// `scored_tokens` are scored in all (-1: every one). Gives the memory of the contents back on its
// way.
std::vector<std::vector<int32_t>> TokenizeFiles(const Engine& engine,
                                                std::vector<std::string> contents, bool reset,
                                                int64_t scored_tokens);

}  // namespace godwit::lab
