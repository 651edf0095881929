// Texts that are scored token by token, for `godwit perplexity` and `godwit eval quant`.
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
  bool lossy = false;  // as in TextInput
};

void AddScoredFilesFlags(console::CommandLine& line,
                         ScoredFiles& options);  // --file, --reset, --lossy

// The contents of the files; "-" is standard input. Throws Error(kInput) for an empty file.
std::vector<std::string> ReadFiles(const ScoredFiles& options);

// `others` and the files, which CheckResultFiles protects.
std::vector<console::NamedFile> Inputs(const ScoredFiles& options,
                                       std::vector<console::NamedFile> others);

// One list of ids for every text that begins anew. If at most `scored_tokens` are scored in all
// (-1: every one), only as many as these need. Frees the contents on its way.
std::vector<std::vector<int32_t>> TokenizeFiles(const Engine& engine,
                                                std::vector<std::string> contents, bool reset,
                                                int64_t scored_tokens);

}  // namespace godwit::lab
