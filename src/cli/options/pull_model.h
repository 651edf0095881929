// Downloads of models: by `godwit pull`, and where -m names one that is not there.
#pragma once

#include <filesystem>
#include <string>

#include "hub/hub_name.h"
#include "hub/pull.h"

namespace godwit::cli {

struct PullRequest {
  hub::HubName name;
  std::string revision = "main";
  bool dry_run = false;  // only the plan
};

struct PulledModel {
  hub::PullPlan plan;          // as it was before
  std::string name;            // "org/name:Q4_K_M"
  std::filesystem::path path;  // a folder, or a GGUF file by its first part
};

// Says on standard error how much comes, shows progress there, and stops at Ctrl-C. Throws as
// hub::Pull and hub::ChooseFiles do.
PulledModel PullModel(const PullRequest& request);

// Asks whoever sits at the terminal whether to download it, and does. False where nobody does, or
// the answer is no.
bool OfferPull(const hub::HubName& name);

}  // namespace godwit::cli
