#include "cli/task_runs.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "cli/options/parse_value.h"
#include "cli/terminal/format.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/summary.h"

namespace godwit::cli {
namespace {

void ParseTasks(std::string_view names, std::vector<const eval::Task*>& tasks) {
  tasks.clear();
  if (names == "all") return;
  for (const std::string_view name : SplitAtCommas(names)) {
    const eval::Task& task = eval::FindTask(name);
    if (std::find(tasks.begin(), tasks.end(), &task) != tasks.end()) {
      Throw(ErrorKind::kInput, "the task {} is named twice", task.name);
    }
    tasks.push_back(&task);
  }
}

// Those whose files are in the folder.
std::vector<const eval::Task*> FindTasks(const std::filesystem::path& folder) {
  std::vector<const eval::Task*> tasks;
  for (const eval::Task& task : eval::AllTasks()) {
    if (IsListed(eval::TaskFile(folder, task))) tasks.push_back(&task);
  }
  if (tasks.empty()) {
    const auto file = [](const eval::Task& task) { return eval::TaskFile("", task).native(); };
    Throw(ErrorKind::kIo, "{}: expected at least one of {}", Quote(folder.native()),
          NameList(eval::AllTasks(), file));
  }
  return tasks;
}

nlohmann::ordered_json Number(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

void PutAccuracy(nlohmann::ordered_json& json, const std::string& name,
                 const std::optional<eval::Accuracy>& accuracy) {
  json[name] = accuracy ? Number(accuracy->share) : Number({});
  json[name + "_stderr"] = accuracy ? Number(accuracy->standard_error) : Number({});
}

}  // namespace

void AddTaskFlags(CommandLine& line, TaskOptions& options) {
  line.Group("Tasks");
  line.Add({.names = "-d,--data",
            .value = "FOLDER",
            .help = "where the rows are: a file TASK.jsonl for each task"},
           options.folder);
  std::vector<std::string> names = Names(eval::AllTasks(), &eval::Task::name);
  names.emplace_back("all");
  line.Add({.names = "--tasks",
            .value = "A,B,...",
            .help = "which ones. There are: " + NameList(eval::AllTasks(), &eval::Task::name),
            .fallback = "all whose files are there",
            .choices = std::move(names)},
           [&](const std::string& value) { ParseTasks(value, options.tasks); });
  line.AddInt(
      {.names = "--limit", .value = "N", .help = "only the first N rows of each task (0: all)"},
      options.limit, 0);
}

std::vector<NamedFile> TaskFiles(const std::string& folder) {
  std::vector<NamedFile> files;
  if (folder.empty()) return files;
  for (const eval::Task& task : eval::AllTasks()) {
    files.push_back({"-d", eval::TaskFile(folder, task).native()});
  }
  return files;
}

std::vector<TaskRows> ReadTasks(const TaskOptions& options) {
  std::vector<TaskRows> all;
  for (const eval::Task* task : options.tasks.empty() ? FindTasks(options.folder) : options.tasks) {
    auto questions = eval::ReadQuestions(eval::TaskFile(options.folder, *task), *task);
    if (options.limit > 0 && options.limit < std::ssize(questions)) {
      questions.resize(static_cast<size_t>(options.limit));
    }
    all.push_back({.task = task, .questions = std::move(questions)});
  }
  return all;
}

std::vector<eval::EncodedTask> EncodeTasks(const Engine& engine, int64_t limit_tokens,
                                           std::span<const TaskRows> tasks) {
  ProgressLine progress("making tokens of the questions", ProgressUnit::kTokens);
  std::vector<eval::EncodedTask> encoded;
  for (const TaskRows& rows : tasks) {
    encoded.push_back(eval::EncodeTask(
        *rows.task, rows.questions, [&](std::string_view text) { return engine.Tokenize(text); },
        limit_tokens));
  }
  return encoded;
}

std::vector<TaskResult> RunTasks(const Engine& engine, Session& session,
                                 std::span<const TaskRows> tasks) {
  const auto encoded = EncodeTasks(engine, session.limit_tokens(), tasks);
  int64_t total_tokens = 0;
  for (const eval::EncodedTask& task : encoded) total_tokens += task.read_tokens;
  std::vector<TaskResult> results;
  int64_t done_tokens = 0;
  for (const eval::EncodedTask& task : encoded) {
    // Its rate and the time left are those of all tasks together.
    ProgressLine progress(fmt::format("evaluating {}", task.task->name), ProgressUnit::kTokens);
    KvReport longest;
    progress.Update(done_tokens, total_tokens, done_tokens);
    results.push_back({.task = task.task,
                       .metrics = eval::EvaluateTask(
                           session, task,
                           [&](int64_t done) {
                             progress.Update(done_tokens + done, total_tokens, done_tokens);
                             if (const KvReport kv = session.kv(); kv.seen > longest.seen)
                               longest = kv;
                           }),
                       .skipped = task.skipped});
    progress.Finish();
    SayDropped(longest, fmt::format(" in the longest row of {}", task.task->name));
    done_tokens += task.read_tokens;
  }
  return results;
}

std::string AccuracyText(const std::optional<eval::Accuracy>& accuracy) {
  if (!accuracy) return "-";
  if (!accuracy->standard_error) return fmt::format("{:.4f}", accuracy->share);
  return fmt::format("{:.4f} ± {:.4f}", accuracy->share, *accuracy->standard_error);
}

std::string SkippedText(std::string_view task, int64_t skipped, int64_t scored,
                        int64_t limit_tokens) {
  if (skipped == 0) return "";
  return fmt::format("{}: {} of {} skipped, longer than the context of {} tokens\n", task, skipped,
                     Plural(skipped + scored, "row"), limit_tokens);
}

nlohmann::ordered_json TasksJson(std::span<const TaskResult> results) {
  nlohmann::ordered_json json;
  for (const TaskResult& result : results) {
    nlohmann::ordered_json task;
    task["n"] = result.metrics.n();
    task["skipped"] = result.skipped;
    PutAccuracy(task, "acc", result.metrics.acc());
    PutAccuracy(task, "acc_norm", result.metrics.acc_norm());
    task["chance"] = Number(result.metrics.chance());
    task["perplexity"] = Number(result.metrics.perplexity());
    json[std::string(result.task->name)] = std::move(task);
  }
  return json;
}

}  // namespace godwit::cli
