#include "lab/task_runs.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "console/options/parse_value.h"
#include "console/terminal/format.h"
#include "console/terminal/progress_line.h"

namespace godwit::lab {
namespace {

void ParseTasks(std::string_view names, std::vector<const eval::Task*>& tasks) {
  tasks.clear();
  if (names == "all") return;
  for (const std::string_view name : console::SplitAtCommas(names)) {
    const eval::Task& task = eval::FindTask(name);
    if (std::find(tasks.begin(), tasks.end(), &task) != tasks.end()) {
      Throw(ErrorKind::kInput, "the task {} is named twice", task.name);
    }
    tasks.push_back(&task);
  }
}

// The tasks whose files are in the folder.
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

}  // namespace

void AddTaskFlags(console::CommandLine& line, TaskOptions& options) {
  line.Group("Tasks");
  line.Add({.names = "-d,--data",
            .value = "FOLDER",
            .help = "the folder of task files, TASK.jsonl for each task"},
           options.folder);
  std::vector<std::string> names = Names(eval::AllTasks(), &eval::Task::name);
  names.emplace_back("all");
  line.Add({.names = "--tasks",
            .value = "A,B,...",
            .help = "the tasks to run: " + NameList(eval::AllTasks(), &eval::Task::name),
            .fallback = "all that have a file",
            .choices = std::move(names)},
           [&](const std::string& value) { ParseTasks(value, options.tasks); });
  line.AddInt({.names = "--limit",
               .value = "N",
               .help = "take only the first N rows of each task (0: all)"},
              options.limit, 0);
}

std::vector<console::NamedFile> TaskFiles(const std::string& folder) {
  std::vector<console::NamedFile> files;
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
      questions.resize(options.limit);
    }
    all.push_back({.task = task, .questions = std::move(questions)});
  }
  return all;
}

std::vector<eval::EncodedTask> EncodeTasks(const Engine& engine, int64_t limit_tokens,
                                           std::span<const TaskRows> tasks) {
  console::ProgressLine progress("tokenizing the questions", console::ProgressUnit::kTokens);
  std::vector<eval::EncodedTask> encoded;
  for (const TaskRows& rows : tasks) {
    encoded.push_back(eval::EncodeTask(
        *rows.task, rows.questions, [&](std::string_view text) { return engine.Tokenize(text); },
        limit_tokens));
  }
  return encoded;
}

std::string SkippedText(std::string_view task, int64_t skipped, int64_t scored,
                        int64_t limit_tokens) {
  if (skipped == 0) return "";
  return fmt::format("{}: {} of {} skipped, longer than the context of {} tokens\n", task, skipped,
                     console::Plural(skipped + scored, "row"), limit_tokens);
}

}  // namespace godwit::lab
