// Downloads of models: by `godwit pull`, and where -m names a model that is not there.
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
  hub::PullPlan plan;          // as it was before the download
  std::string name;            // "org/name:Q4_K_M"
  std::filesystem::path path;  // a folder, or a GGUF file by its first part
};

// Downloads a model. Standard error says how much and shows progress; Ctrl-C stops. Throws as
// hub::Pull and hub::ChooseFiles do.
PulledModel PullModel(const PullRequest& request);

// Asks the person at the terminal whether to download the model, and downloads it. False: nobody is
// at a terminal, or the answer is no.
bool OfferPull(const hub::HubName& name);

}  // namespace godwit::cli
