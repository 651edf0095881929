// The report of `godwit eval quant`, printed and written.
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
  std::string model;                          // as the user named it
  std::optional<eval::ModelComparison> text;  // compared with the reference
  std::vector<TaskResult> tasks;
  int64_t limit_tokens = 0;  // the longest row of a task that is not skipped
};

// One line about a model as soon as it is compared: "w8a8: perplexity 64.94, +0.45%, mean KL
// 0.0079, top-1 94.10%".
std::string ComparedText(std::string_view model, const eval::ModelComparison& text);

// Tables for people: one of the text and one of the tasks, if they were measured. rows: the
// reference first, which has no comparison of its own; then at least one more.
std::string QuantText(std::span<const QuantRow> rows);

// Adds "models": [...] behind the fields of the request.
void PutQuant(nlohmann::ordered_json& json, std::span<const QuantRow> rows);

// A line of --jsonl.
std::string ComparedTokenJson(std::string_view model, const eval::ComparedToken& compared);

}  // namespace godwit::lab
