// godwit pull: downloads a model from the Hugging Face hub into its cache, where -m finds it.

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/quote.h"
#include "base/stopwatch.h"
#include "cli/commands.h"
#include "cli/options/pull_model.h"
#include "console/exit_code.h"
#include "console/options/command_line.h"
#include "console/terminal/format.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/table.h"
#include "hub/hub_cache.h"

namespace godwit::cli {
namespace {

struct PullOptions {
  std::string model;
  PullRequest request;
  bool json = false;
};

PullOptions ParsePull(std::span<const std::string> arguments) {
  PullOptions options;
  console::CommandLine line(
      "pull", "ORG/NAME[:QUANT] [flags]",
      "Downloads a model from the Hugging Face hub into the cache that other programs share, where "
      "-m ORG/NAME[:QUANT] finds it. :Q4_K_M chooses one of several GGUF models. An interrupted "
      "download continues. The variables of huggingface_hub apply: HF_TOKEN, for private or gated "
      "models; HF_ENDPOINT, another hub; HF_HUB_CACHE and HF_HOME, the place of the cache; "
      "HF_HUB_OFFLINE.");
  line.Operand(options.model);
  line.Group("Files");
  line.Add({.names = "--revision",
            .value = "NAME",
            .help = "a branch, tag or commit; -m ORG/NAME finds main only"},
           options.request.revision);
  line.Add({.names = "--dry-run", .value = "", .help = "list the files and download nothing"},
           options.request.dry_run);
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.Parse(arguments);
  hub::HubName& name = options.request.name;
  name = hub::SplitHubName(options.model);
  const bool lacks_quant = name.quant.empty() && options.model.ends_with(':');
  if (!hub::IsHubName(name.repository) || lacks_quant) {
    Throw(ErrorKind::kInput,
          "{}: expected ORG/NAME or ORG/NAME:QUANT, the name of a model on the hub",
          Quote(options.model));
  }
  if (!hub::IsSafeFileName(options.request.revision)) {
    Throw(ErrorKind::kInput, "--revision {}: expected a branch, tag or commit",
          Quote(options.request.revision));
  }
  return options;
}

nlohmann::ordered_json JsonOf(const PulledModel& model) {
  const hub::PullPlan& plan = model.plan;
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (size_t i = 0; i < plan.files.size(); ++i) {
    const hub::RemoteFile& file = plan.files[i];
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"present_bytes", plan.present[i]},
                     {"blob", file.blob}});
  }
  return {{"model", model.name},           {"revision", plan.revision},
          {"commit", plan.listing.commit}, {"path", model.path.native()},
          {"bytes", plan.bytes()},         {"missing_bytes", plan.missing_bytes()},
          {"files", std::move(files)}};
}

void ListFiles(const hub::PullPlan& plan) {
  console::Table table({{"<file"}, {"size"}, {"<"}});
  for (size_t i = 0; i < plan.files.size(); ++i) {
    const hub::RemoteFile& file = plan.files[i];
    table.Add(QuoteUnlessPlain(file.name), FormatBytes(file.bytes),
              plan.present[i] == file.bytes ? "complete"
              : plan.present[i] > 0         ? FormatBytes(plan.present[i]) + " downloaded"
                                            : "");
  }
  console::WriteOutput(table.Take());
  console::WriteOutput(fmt::format("\n{} of {}, {} to download\n", FormatBytes(plan.bytes()),
                                   console::Plural(std::ssize(plan.files), "file"),
                                   FormatBytes(plan.missing_bytes())));
}

}  // namespace

int Pull(std::span<const std::string> arguments) {
  const Stopwatch watch;
  const PullOptions options = ParsePull(arguments);
  const PulledModel model = PullModel(options.request);
  if (options.json) {
    auto json = JsonOf(model);
    if (!options.request.dry_run) json["elapsed_ms"] = watch.ms();
    console::WriteJson(json);
    return console::kExitOk;
  }
  if (options.request.dry_run) {
    ListFiles(model.plan);
    return console::kExitOk;
  }
  console::WriteOutput(model.path.native() + "\n");
  console::WriteNotice(fmt::format(
      "godwit: {}: -m {}\n", model.plan.missing_bytes() == 0 ? "already downloaded" : "downloaded",
      QuoteUnlessPlain(model.plan.revision == "main" ? model.name : model.path.native())));
  return console::kExitOk;
}

}  // namespace godwit::cli
