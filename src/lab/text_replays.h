// Replays of a text that count the time that draft tokens would save, and their flags of `godwit
// eval text`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/model_folder.h"
#include "cli/options/model_options.h"
#include "console/options/command_line.h"
#include "generate/replay_drafts.h"

namespace godwit::lab {

struct ReplayOptions {
  std::optional<ReplayTimes> times;  // none: nothing is replayed
  std::vector<std::string> drafts;   // none: from the text's own suffixes, without a model
  DraftShape shape;
  std::string kv = "dense";
};

void AddReplayFlags(console::CommandLine& line, ReplayOptions& options);

// Checks the flags once they are parsed. Throws Error(kInput) for flags that say nothing without
// others.
void CheckReplay(const ReplayOptions& options);

struct NamedReplay {
  std::string drafts;
  Replay replay;
};

// One replay for each of options.drafts. The first prompt_tokens were not written by a model.
std::vector<NamedReplay> ReplayAll(const ModelFolder& model, const cli::ModelOptions& compute,
                                   const ReplayOptions& options, std::span<const int32_t> tokens,
                                   int64_t prompt_tokens);

}  // namespace godwit::lab
