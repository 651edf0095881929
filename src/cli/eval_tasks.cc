// godwit eval tasks: zero-shot tasks, scored as lm-evaluation-harness scores them.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/task_runs.h"
#include "cli/terminal/json_output.h"
#include "cli/terminal/output.h"
#include "cli/terminal/table.h"
#include "cli/verbs.h"

namespace godwit::cli {
namespace {

struct Options {
  ModelOptions model;
  TaskOptions tasks;
  SessionOptions session;
  bool json = false;
};

void Parse(std::span<const std::string> arguments, Options& options) {
  CommandLine line("eval tasks", "[-m MODEL] -d FOLDER [flags]",
                   "Scores a model on zero-shot tasks with the prompts and in the convention of "
                   "lm-evaluation-harness: of several continuations, the most probable one is the "
                   "model's answer.");
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  AddTaskFlags(line, options.tasks);
  line.Group("Output");
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  AddKvFlags(line, options.session, options.model.kv_memory_bytes);
  line.Parse(arguments);
  ChooseModel(options.model);
  if (options.tasks.folder.empty()) {
    Throw(ErrorKind::kInput, "a folder of task files is needed: name it with -d FOLDER");
  }
}

void WriteReport(const Options& options, std::span<const TaskResult> results) {
  nlohmann::ordered_json json;
  json["model"] = options.model.folder;
  json["kv"] = options.session.kv;
  json["limit"] = options.tasks.limit;
  json["results"] = TasksJson(results);
  WriteJson(json);
}

}  // namespace

int EvalTasks(std::span<const std::string> arguments) {
  Options options;
  Parse(arguments, options);
  const auto rows = ReadTasks(options.tasks);
  const Engine engine = LoadEngine(options.model, options.session);
  Session session = engine.NewSession(options.session);
  if (options.json) {
    WriteReport(options, RunTasks(engine, session, rows));
    return kExitOk;
  }
  Table table({"<task", "n", "acc", "acc_norm", "chance", "perplexity"});
  // Printed row by row.
  for (const TaskRows& task : rows) {
    table.MakeRoomFor(
        {std::string(task.task->name), "100000", "0.0000 ± 0.0000", "0.0000 ± 0.0000"});
  }
  const auto results = RunTasks(engine, session, rows, [&](const TaskResult& result) {
    const eval::TaskMetrics& metrics = result.metrics;
    const auto chance = metrics.chance();
    const auto perplexity = metrics.perplexity();
    table.Add(result.task->name, metrics.n(), AccuracyText(metrics.acc()),
              AccuracyText(metrics.acc_norm()), chance ? fmt::format("{:.4f}", *chance) : "-",
              perplexity ? fmt::format("{:.5g}", *perplexity) : "-");
    WriteOutput(table.Take());
  });
  WriteOutput(SkippedText(results, session.limit_tokens()));
  return kExitOk;
}

}  // namespace godwit::cli
