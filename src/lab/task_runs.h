// Zero-shot tasks for `godwit eval tasks` and `godwit eval quant`: the choice of tasks, their rows,
// and their runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "console/options/command_line.h"
#include "console/terminal/result_files.h"
#include "eval/evaluate.h"
#include "eval/question.h"
#include "eval/tasks.h"
#include "godwit/engine.h"

namespace godwit::lab {

struct TaskOptions {
  std::string folder;
  std::vector<const eval::Task*> tasks;  // empty: all whose files are there
  int64_t limit = 0;                     // rows of each task; 0: all
};

void AddTaskFlags(console::CommandLine& line, TaskOptions& options);  // --data, --tasks, --limit

struct TaskRows {
  const eval::Task* task;
  std::vector<eval::Question> questions;
};

// The files in `folder` that hold tasks, which CheckResultFiles protects.
std::vector<console::NamedFile> TaskFiles(const std::string& folder);

// Reads all tasks before the model: a broken row in the last file is known at once. Throws
// Error(kIo) and Error(kFormat) as eval::ReadQuestions does.
std::vector<TaskRows> ReadTasks(const TaskOptions& options);

// The questions that fit into `limit_tokens`, as in EncodeTask. Shows progress.
std::vector<eval::EncodedTask> EncodeTasks(const Engine& engine, int64_t limit_tokens,
                                           std::span<const TaskRows> tasks);

// "piqa: 1 of 3 rows skipped, longer than the context of 40 tokens" and a newline; empty if no row
// was skipped.
std::string SkippedText(std::string_view task, int64_t skipped, int64_t scored,
                        int64_t limit_tokens);

}  // namespace godwit::lab
