// godwit eval tasks: zero-shot tasks, scored as lm-evaluation-harness scores them.

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "cli/exit_code.h"
#include "cli/options/kv_options.h"
#include "cli/options/model_options.h"
#include "cli/options/parse_value.h"
#include "cli/terminal/format.h"
#include "cli/terminal/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/verbs.h"
#include "eval/evaluate.h"
#include "eval/tasks.h"

namespace godwit::cli {
namespace {

struct TasksOptions {
  ModelOptions model;
  std::string folder;
  std::vector<const eval::Task*> tasks;  // empty: those whose files are there
  int64_t limit = 0;                     // rows of each task; 0: all
  SessionOptions session;
  bool json = false;
};

void ParseTasks(std::string_view names, std::vector<const eval::Task*>& tasks) {
  tasks.clear();
  for (const std::string_view name : SplitAtCommas(names)) {
    const eval::Task& task = eval::FindTask(name);
    if (std::find(tasks.begin(), tasks.end(), &task) != tasks.end()) {
      Throw(ErrorKind::kInput, "the task {} is named twice", task.name);
    }
    tasks.push_back(&task);
  }
}

bool ParseEvalTasks(std::span<const std::string> arguments, TasksOptions& options) {
  CommandLine line("eval tasks", "-m FOLDER -d FOLDER [flags]",
                   "Scores a model on zero-shot tasks with the prompts and in the convention of "
                   "lm-evaluation-harness: of several continuations, the most probable one is the "
                   "model's answer.");
  AddModelFlag(line, options.model);
  AddComputeFlags(line, options.model);
  line.Group("Tasks");
  line.Add({.names = "-d,--data",
            .value = "FOLDER",
            .help = "where the rows are: a file TASK.jsonl for each task"},
           options.folder);
  std::string names;
  for (const eval::Task& task : eval::AllTasks()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", task.name);
  }
  line.Add({.names = "--tasks",
            .value = "A,B,...",
            .help = "which ones (all whose files are there). There are: " + names},
           [&](const std::string& value) { ParseTasks(value, options.tasks); });
  line.AddInt(
      {.names = "--limit", .value = "N", .help = "only the first N rows of each task (0: all)"},
      options.limit, 0);
  line.Group("Output");
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  AddKvFlags(line, options.session);
  if (!line.Parse(arguments)) return false;
  ChooseModel(options.model);
  if (options.folder.empty()) {
    Throw(ErrorKind::kInput, "a folder of task files is needed: name it with -d FOLDER");
  }
  return true;
}

// Those whose files are in the folder.
std::vector<const eval::Task*> FindTasks(const std::filesystem::path& folder) {
  std::vector<const eval::Task*> tasks;
  std::string files;
  for (const eval::Task& task : eval::AllTasks()) {
    if (IsListed(eval::TaskFile(folder, task))) tasks.push_back(&task);
    files += fmt::format("{}{}.jsonl", files.empty() ? "" : ", ", task.name);
  }
  if (tasks.empty()) {
    Throw(ErrorKind::kIo, "{}: expected at least one of {}", Quote(folder.native()), files);
  }
  return tasks;
}

struct TaskResult {
  const eval::Task* task;
  eval::Tally tally;
  int64_t skipped;
};

std::vector<eval::EncodedTask> EncodeTasks(const Engine& engine, int64_t max_tokens,
                                           std::span<const eval::Task* const> tasks,
                                           std::vector<std::vector<eval::Question>> questions) {
  ProgressLine progress("making tokens of the questions", ProgressUnit::kTokens);
  std::vector<eval::EncodedTask> encoded;
  for (size_t i = 0; i < tasks.size(); ++i) {
    encoded.push_back(eval::EncodeTask(
        *tasks[i], std::move(questions[i]),
        [&](std::string_view text) { return engine.Tokenize(text); }, max_tokens));
  }
  return encoded;
}

std::string AccuracyText(const std::optional<eval::Accuracy>& accuracy) {
  if (!accuracy) return "-";
  if (!accuracy->standard_error) return fmt::format("{:.4f}", accuracy->share);
  return fmt::format("{:.4f} ± {:.4f}", accuracy->share, *accuracy->standard_error);
}

std::string TableRow(std::string_view task, std::string_view n, std::string_view acc,
                     std::string_view acc_norm, std::string_view chance,
                     std::string_view perplexity) {
  return fmt::format("{:<14} {:>6}  {:>15}  {:>15}  {:>6}  {:>10}\n", task, n, acc, acc_norm,
                     chance, perplexity);
}

std::string TableRow(const TaskResult& result) {
  const eval::Tally& tally = result.tally;
  const auto chance = tally.chance();
  const auto perplexity = tally.perplexity();
  return TableRow(result.task->name, fmt::format("{}", tally.n()), AccuracyText(tally.acc()),
                  AccuracyText(tally.acc_norm()), chance ? fmt::format("{:.4f}", *chance) : "-",
                  perplexity ? fmt::format("{:.5g}", *perplexity) : "-");
}

std::string SkippedText(std::span<const TaskResult> results, int64_t max_tokens) {
  std::string text;
  for (const TaskResult& result : results) {
    if (result.skipped == 0) continue;
    text += fmt::format("{}: {} of {} skipped, longer than the context of {} tokens\n",
                        result.task->name, result.skipped,
                        Plural(result.skipped + result.tally.n(), "row"), max_tokens);
  }
  return text;
}

nlohmann::ordered_json Number(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

void PutAccuracy(nlohmann::ordered_json& json, const std::string& name,
                 const std::optional<eval::Accuracy>& accuracy) {
  json[name] = accuracy ? Number(accuracy->share) : Number({});
  json[name + "_stderr"] = accuracy ? Number(accuracy->standard_error) : Number({});
}

std::string ToJson(const TasksOptions& options, std::span<const TaskResult> results) {
  nlohmann::ordered_json json;
  json["model"] = options.model.folder;
  json["kv"] = options.session.kv;
  json["limit"] = options.limit;
  for (const TaskResult& result : results) {
    nlohmann::ordered_json task;
    task["n"] = result.tally.n();
    task["skipped"] = result.skipped;
    PutAccuracy(task, "acc", result.tally.acc());
    PutAccuracy(task, "acc_norm", result.tally.acc_norm());
    task["chance"] = Number(result.tally.chance());
    task["perplexity"] = Number(result.tally.perplexity());
    json["results"][std::string(result.task->name)] = std::move(task);
  }
  // The name of a folder may be any bytes.
  using OnInvalid = nlohmann::ordered_json::error_handler_t;
  return json.dump(-1, ' ', /*ensure_ascii=*/false, OnInvalid::replace) + "\n";
}

}  // namespace

int EvalTasks(std::span<const std::string> arguments) {
  TasksOptions options;
  if (!ParseEvalTasks(arguments, options)) return kExitOk;
  if (options.tasks.empty()) options.tasks = FindTasks(options.folder);

  // All of them before the model: a broken row in the last file is known at once.
  std::vector<std::vector<eval::Question>> questions;
  for (const eval::Task* task : options.tasks) {
    questions.push_back(eval::ReadQuestions(eval::TaskFile(options.folder, *task), *task));
    const auto rows = static_cast<int64_t>(questions.back().size());
    if (options.limit > 0 && options.limit < rows) {
      questions.back().resize(static_cast<size_t>(options.limit));
    }
  }
  const Engine engine = LoadEngine(options.model, options.session);
  Session session = engine.NewSession(options.session);
  const auto tasks = EncodeTasks(engine, session.max_tokens(), options.tasks, std::move(questions));

  int64_t total_tokens = 0;
  for (const eval::EncodedTask& task : tasks) total_tokens += task.read_tokens;
  if (!options.json) {
    WriteOutput(TableRow("task", "n", "acc", "acc_norm", "chance", "perplexity"));
  }
  std::vector<TaskResult> results;
  int64_t done_tokens = 0;
  for (const eval::EncodedTask& task : tasks) {
    // The line is gone before a row of the table appears; its rate and the time left are those of
    // all tasks together.
    ProgressLine progress(fmt::format("evaluating {}", task.task->name), ProgressUnit::kTokens);
    progress.Update(done_tokens, total_tokens, done_tokens);
    results.push_back(
        {.task = task.task,
         .tally = eval::EvaluateTask(
             session, task,
             [&](int64_t done) { progress.Update(done_tokens + done, total_tokens, done_tokens); }),
         .skipped = task.skipped});
    progress.Finish();
    done_tokens += task.read_tokens;
    if (!options.json) WriteOutput(TableRow(results.back()));
  }
  WriteOutput(options.json ? ToJson(options, results) : SkippedText(results, session.max_tokens()));
  return kExitOk;
}

}  // namespace godwit::cli
