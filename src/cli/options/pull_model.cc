#include "cli/options/pull_model.h"

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "base/quote.h"
#include "console/terminal/format.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/line_source.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "hub/choose_files.h"
#include "hub/environment.h"
#include "hub/hub_cache.h"
#include "hub/hub_client.h"

namespace godwit::cli {
namespace {

void SayWhatComes(const PulledModel& model) {
  const hub::PullPlan& plan = model.plan;
  const std::string rest =
      plan.missing_bytes() == plan.bytes()
          ? ""
          : fmt::format(", {} of them to download", FormatBytes(plan.missing_bytes()));
  console::WriteNotice(fmt::format("godwit: {}: {} in {}{}, into {}\n",
                                   QuoteUnlessPlain(model.name), FormatBytes(plan.bytes()),
                                   console::Plural(std::ssize(plan.files), "file"), rest,
                                   QuoteUnlessPlain(plan.folder.parent_path().native())));
}

PulledModel PullUntil(const PullRequest& request, const CancelToken& cancel) {
  const hub::HubName& name = request.name;
  console::ProgressLine progress("downloading " + hub::Spelling(name.repository, name.quant),
                                 console::ProgressUnit::kBytes);
  const auto say = [&](const std::string& text) { progress.Say("godwit: " + text); };
  hub::HubOptions options = hub::HubOptions::FromEnvironment();
  options.cancel = &cancel;
  options.say = say;
  hub::HubClient client(std::move(options));
  const hub::Listing listing = client.List(name.repository, request.revision);
  const hub::ChosenFiles chosen = hub::ChooseFiles(listing, name.quant);
  PulledModel model{
      .plan = PlanPull(client, listing, request.revision, chosen.files, hub::CacheFolder()),
      .name = name.repository + (chosen.word.empty() ? "" : ":" + chosen.word)};
  model.path = model.plan.snapshot();
  if (!chosen.word.empty()) model.path /= chosen.files.front().name;
  if (request.dry_run) return model;
  hub::RequireDiskSpace(model.plan);
  if (model.plan.missing_bytes() > 0) SayWhatComes(model);
  hub::Pull(client, model.plan,
            {.progress = [&](int64_t done, int64_t total,
                             int64_t start) { progress.Update(done, total, start); },
             .say = say,
             .cancel = &cancel});
  return model;
}

}  // namespace

PulledModel PullModel(const PullRequest& request) {
  CancelToken cancel;
  const console::CancelOnInterrupt on_interrupt(cancel, /*presses_to_exit=*/2);
  try {
    return PullUntil(request, cancel);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCancelled) throw;
    throw Error(ErrorKind::kCancelled, "cancelled; godwit pull continues the download from here");
  }
}

bool OfferPull(const hub::HubName& name) {
  if (!console::InputIsTerminal() || !console::NoticesGoToTerminal()) return false;
  if (hub::IsSet("HF_HUB_OFFLINE")) return false;
  console::WriteStatus(fmt::format(
      "godwit: {} is not on this machine. Download it from the Hugging Face hub? [y/N] ",
      hub::Spelling(name.repository, name.quant)));
  const std::string answer = Lower(console::PipedLines().Read("").text);
  if (answer != "y" && answer != "yes") return false;
  PullModel({.name = name});
  return true;
}

}  // namespace godwit::cli
