#include "cli/options/model_options.h"

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/terminal/output.h"
#include "cli/terminal/progress_line.h"
#include "engine/storage_types.h"
#include "model/archs/all.h"
#include "weights/hf_config.h"

namespace godwit::cli {
namespace {

// The small model that comes with the project, if this program lies where it was built.
std::optional<std::filesystem::path> OwnModel() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto root = program.parent_path().parent_path().parent_path();  // ROOT/build/PRESET/godwit
  const auto folder = root / "models" / "books-3m";
  if (error || !std::filesystem::is_directory(folder, error)) return std::nullopt;
  return folder;
}

}  // namespace

void AddModelFlag(CommandLine& line, ModelOptions& options) {
  line.Group("Model");
  line.Add({.names = "-m,--model",
            .value = "FOLDER",
            .help = "Hugging Face model folder: config.json, *.safetensors, tokenizer.json"},
           options.folder);
}

void AddComputeFlags(CommandLine& line, ModelOptions& options) {
  line.Add(
      {.names = "-t,--threads", .value = "N", .help = "threads to compute with (0: one per core)"},
      [&options](const std::string& value) {
        // llama.cpp's default is -1.
        const int64_t threads = ParseInt(value, -1, ThreadPool::kMaxThreads);
        options.threads = threads < 0 ? 0 : static_cast<int>(threads);
      });
  line.Add({.names = "--isa",
            .value = "NAME",
            .help = "instruction set (default: the best; see godwit inspect)"},
           options.isa);
  line.Add({.names = "--weights",
            .value = "TYPE",
            .help = "what the weights are loaded as: " + WeightTypeNames() +
                    " (the default is auto: as in the checkpoint)"},
           [&options](const std::string& value) {
             ParseWeightType(value);  // refused here, before anything is read
             options.weights = value;
           });
}

void ChooseModel(ModelOptions& options) {
  if (!options.folder.empty()) return;
  const auto own = OwnModel();
  if (!own) {
    Throw(ErrorKind::kInput,
          "a model is needed: name its folder with -m FOLDER, or in the variable GODWIT_MODEL");
  }
  options.folder = own->string();
  if (StatusIsTerminal()) {
    WriteStatus("godwit: no -m given: taking our own small model, models/" +
                own->filename().string() + "\n");
  }
}

Engine LoadEngine(const ModelOptions& options, const SessionOptions& session) {
  const std::filesystem::path folder = options.folder;
  if (std::filesystem::is_directory(folder)) {
    CheckKvOptions(DescribeModel(HfConfig::Load(folder / "config.json")), session);
  }
  const auto name = std::filesystem::absolute(folder / "").parent_path().filename().string();
  ProgressLine progress("loading " + name, ProgressUnit::kBytes);
  return Engine(
      options.folder,
      {.threads = options.threads,
       .isa = options.isa,
       .weights = options.weights,
       .on_progress = [&](int64_t done, int64_t total) { progress.Update(done, total); },
       .on_warning =
           [&](const std::string& message) { progress.Say("godwit: warning: " + message); }});
}

}  // namespace godwit::cli
