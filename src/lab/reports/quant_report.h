// What `godwit eval quant` prints and writes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/comparison.h"
#include "eval/task_metrics.h"
#include "eval/tasks.h"

namespace godwit::lab {

struct TaskResult {
  const eval::Task* task;
  eval::TaskMetrics metrics;
  int64_t skipped;  // rows longer than the context
};

struct QuantRow {
  std::string model;                     // as it was named
  std::optional<eval::Comparison> text;  // with the reference
  std::vector<TaskResult> tasks;
  int64_t limit_tokens = 0;  // the longest row of a task that is not skipped
};

// rows: the reference first, which has no comparison of its own; then at least one more. Tables for
// people: one of the text, if there was one, and one of the tasks, if there were any.
std::string QuantText(std::span<const QuantRow> rows);

// "models": [...], to stand behind what was asked for.
void PutQuant(nlohmann::ordered_json& json, std::span<const QuantRow> rows);

// A line of --jsonl.
std::string ComparedTokenJson(std::string_view model, const eval::ComparedToken& compared);

}  // namespace godwit::lab
