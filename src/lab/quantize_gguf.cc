#include "lab/quantize_gguf.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/new_folder.h"
#include "base/quote.h"
#include "base/stopwatch.h"
#include "checkpoint/model_folder.h"
#include "console/exit_code.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "console/terminal/result_files.h"
#include "console/terminal/table.h"
#include "lab/model_run.h"

namespace godwit::lab {
namespace {

void CheckOutput(const cli::ModelOptions& options, const GgufOutput& output) {
  if (output.dry_run) return;
  if (output.file.empty()) {
    Throw(ErrorKind::kInput, "a file for the result is needed: name it with -o FILE.gguf");
  }
  if (!output.file.ends_with(".gguf")) {
    Throw(ErrorKind::kInput,
          "{}: expected a name that ends with .gguf, which other programs require",
          Quote(output.file));
  }
  RefuseExisting(output.file);
  console::CheckResultFiles({{"-o", output.file}}, {{"-m", options.folder}});
}

// The number of tensors of each type, sorted by type name.
std::map<std::string, int64_t, std::less<>> CountTypes(const quant::GgufPlan& plan) {
  std::map<std::string, int64_t, std::less<>> types;
  for (const NewGgufTensor& tensor : plan.tensors) ++types[std::string(tensor.type->name)];
  return types;
}

std::string List(const std::map<std::string, int64_t, std::less<>>& types) {
  std::string text;
  for (const auto& [type, count] : types) {
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", count, type);
  }
  return text;
}

std::string Report(const quant::GgufPlan& plan, const quant::GgufScheme& scheme) {
  console::Table facts = console::Facts();
  facts.Add("type", fmt::format("{}: {}", scheme.name, scheme.description));
  facts.Add("tensors", List(CountTypes(plan)));
  if (!plan.fallbacks.empty()) {
    facts.Add("fallbacks", fmt::format("{}, because their rows are not whole blocks of {}",
                                       List(plan.fallbacks), scheme.type));
  }
  facts.Add("weights",
            fmt::format(
                "{} -> {} ({:.2f})", FormatBytes(plan.before_bytes), FormatBytes(plan.after_bytes),
                static_cast<double>(plan.after_bytes) / static_cast<double>(plan.before_bytes)));
  return facts.Take();
}

}  // namespace

int QuantizeToGguf(cli::ModelOptions& options, const GgufOutput& output) {
  const Stopwatch watch;
  cli::ChooseModel(options);
  const ModelFolder model(options.folder);
  CheckOutput(options, output);
  const quant::GgufPlan plan = quant::PlanGguf(model, *output.scheme);
  cli::WarnAboutSpec(model.spec());
  for (const std::string& warning : plan.form.warnings) {
    console::WriteNotice("godwit: warning: " + warning + "\n");
  }
  if (output.dry_run) {
    console::WriteOutput(Report(plan, *output.scheme));
    return console::kExitOk;
  }
  {
    const CalibrationRun run(options);
    quant::WriteGguf(run.exec(), model, plan, output.file, run.hooks());
  }
  if (output.json) {
    console::WriteJson(nlohmann::ordered_json{{"model", options.folder},
                                              {"output", output.file},
                                              {"type", output.scheme->name},
                                              {"tensors", CountTypes(plan)},
                                              {"fallbacks", plan.fallbacks},
                                              {"before_bytes", plan.before_bytes},
                                              {"after_bytes", plan.after_bytes},
                                              {"elapsed_ms", watch.ms()}});
    return console::kExitOk;
  }
  console::WriteOutput(
      Report(plan, *output.scheme) +
      console::Facts().Add("time", fmt::format("{:.1f} s", watch.ms() / 1000)).Take());
  return console::kExitOk;
}

}  // namespace godwit::lab
