#include "cli/options/model_options.h"

#include <filesystem>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/terminal/progress_line.h"
#include "model/archs/all.h"
#include "weights/hf_config.h"

namespace godwit::cli {

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
}

void RequireModel(const ModelOptions& options) {
  if (!options.folder.empty()) return;
  Throw(ErrorKind::kInput,
        "a model is needed: name its folder with -m FOLDER, or in the variable GODWIT_MODEL");
}

Engine LoadEngine(const ModelOptions& options, const SessionOptions& session) {
  RequireModel(options);
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
       .on_progress = [&](int64_t done, int64_t total) { progress.Update(done, total); },
       .on_warning =
           [&](const std::string& message) { progress.Say("godwit: warning: " + message); }});
}

}  // namespace godwit::cli
