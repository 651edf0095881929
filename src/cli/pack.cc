// godwit pack: writes a model's weights as they lie in memory, to a file that is mapped at start.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/cores.h"
#include "base/machine_memory.h"
#include "base/quote.h"
#include "base/stopwatch.h"
#include "checkpoint/packed_copy.h"
#include "cli/commands.h"
#include "cli/options/find_model.h"
#include "cli/options/model_options.h"
#include "console/exit_code.h"
#include "console/terminal/format.h"
#include "console/terminal/interrupt.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/progress_line.h"
#include "console/terminal/table.h"
#include "engine/storage_types.h"

namespace godwit::cli {
namespace {

struct PackOptions {
  ModelOptions model;
  std::string output;  // empty: beside the model
  bool verify = false;
  bool json = false;
};

PackOptions ParsePack(std::span<const std::string> arguments) {
  PackOptions options;
  console::CommandLine line(
      "pack", "[-m MODEL] [--weights TYPE] [-o FILE] [flags]",
      "Writes a packed copy of a model: its weights as they lie in memory. Later starts map the "
      "copy instead of packing the weights again, with the same result. If the model's files "
      "change, the copy is out of date: godwit says so and does not use it.");
  AddModelFlag(line, options.model);
  AddThreadFlags(line, options.model);
  AddWeightsFlag(line, options.model);
  line.Group("Result");
  line.Add({.names = "-o,--output",
            .value = "FILE",
            .help = "the file to write, for --packed FILE; it appears when it is complete",
            .fallback = "beside the model, where every verb finds it"},
           options.output);
  line.Add(
      {.names = "--verify",
       .value = "",
       .help = "write nothing: compare an existing copy with the model, and report what is wrong"},
      options.verify);
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.RefusePlot();
  line.Parse(arguments);
  ChooseModel(options.model);
  return options;
}

// Packs the model and returns the copy's path.
std::filesystem::path Work(const PackOptions& options) {
  const ModelFolder model(options.model.folder);
  WarnAboutSpec(model.spec());
  WarnAboutThreads(options.model.threads);
  ThreadPool pool(ThreadsFor(options.model.threads));
  CancelToken cancel;
  const console::CancelOnInterrupt on_interrupt(cancel, /*presses_to_exit=*/2);
  console::ProgressLine progress(
      (options.verify ? "reading " : "packing ") + ModelName(model.path()),
      console::ProgressUnit::kBytes);
  const LoadHooks hooks{
      .progress = [&](int64_t done, int64_t total) { progress.Update(done, total); },
      .warn = [&](const std::string& message) { progress.Say("godwit: warning: " + message); },
      .cancel = &cancel};
  const auto storage = ParseWeightType(options.model.weights);
  const PackedOptions packed{.file = options.output, .folder = PackedFolder()};
  return options.verify ? VerifyPackedCopy(model, pool, hooks, storage, packed)
                        : PackModel(model, pool, hooks, storage, packed);
}

}  // namespace

int Pack(std::span<const std::string> arguments) {
  const Stopwatch watch;
  const PackOptions options = ParsePack(arguments);
  const std::filesystem::path file = Work(options);
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(file));
  if (options.json) {
    console::WriteJson({{"model", options.model.folder},
                        {"weights", options.model.weights},
                        {"file", file.native()},
                        {"bytes", bytes},
                        {"elapsed_ms", watch.ms()}});
    return console::kExitOk;
  }
  if (options.verify) {
    console::WriteOutput(QuoteUnlessPlain(file.native()) +
                         ": the copy is complete and up to date\n");
    return console::kExitOk;
  }
  console::WriteOutput(console::Facts()
                           .Add("packed copy", QuoteUnlessPlain(file.native()))
                           .Add("size", FormatBytes(bytes))
                           .Add("time", fmt::format("{:.1f} s", watch.ms() / 1000))
                           .Take());
  return console::kExitOk;
}

}  // namespace godwit::cli
