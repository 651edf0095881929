#include "lab/reports/quant_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "console/terminal/json_output.h"
#include "console/terminal/table.h"
#include "lab/reports/perplexity_report.h"
#include "lab/task_runs.h"

namespace godwit::lab {
namespace {

using Json = nlohmann::ordered_json;

std::string TextTable(std::span<const QuantRow> rows) {
  // Every comparison measured the reference on the same tokens.
  const eval::ModelComparison& any = *rows[1].text;
  console::Table table({"<model",
                        "perplexity",
                        {"change", "{:+.2f}%"},
                        {"mean KL", "{:.3g}"},
                        {"top-1", "{:.2f}%"},
                        {"worst KL", "{:.3g}"}});
  table.Add(rows[0].model, FormatPerplexity(any.reference_perplexity()));
  for (const QuantRow& row : rows.subspan(1)) {
    const eval::ModelComparison& text = *row.text;
    table.Add(row.model, FormatPerplexity(text.perplexity()), 100 * text.change(), text.kl,
              100 * text.top1, text.worst.kl);
  }
  return table.Take() + fmt::format("{} tokens; KL in nats per token\n", any.tokens);
}

// "0.5000 ± 0.0100"; "-" without an accuracy.
std::string AccuracyText(const std::optional<eval::Accuracy>& accuracy) {
  if (!accuracy) return "-";
  if (!accuracy->standard_error) return fmt::format("{:.4f}", accuracy->share);
  return fmt::format("{:.4f} ± {:.4f}", accuracy->share, *accuracy->standard_error);
}

// The mean over the scored tasks, as in the paper's tables.
std::string MeanAccuracy(std::span<const TaskResult> tasks) {
  double sum = 0;
  int64_t scored = 0;
  for (const TaskResult& task : tasks) {
    if (!task.metrics.acc()) continue;
    sum += task.metrics.acc()->share;
    ++scored;
  }
  return scored == 0 ? "-" : fmt::format("{:.4f}", sum / static_cast<double>(scored));
}

std::string TaskTable(std::span<const QuantRow> rows) {
  std::vector<console::Column> columns{"<model"};
  for (const TaskResult& task : rows[0].tasks) columns.emplace_back(std::string(task.task->name));
  columns.emplace_back("mean");
  console::Table table(columns);
  for (const QuantRow& row : rows) {
    std::vector<std::string> cells{row.model};
    for (const TaskResult& task : row.tasks) cells.push_back(AccuracyText(task.metrics.acc()));
    cells.push_back(MeanAccuracy(row.tasks));
    table.AddRow(std::move(cells));
  }
  std::string text = table.Take();
  for (const QuantRow& row : rows) {
    for (const TaskResult& task : row.tasks) {
      text += SkippedText(fmt::format("{}, {}", row.model, task.task->name), task.skipped,
                          task.metrics.n(), row.limit_tokens);
    }
  }
  return text;
}

Json Number(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

void PutAccuracy(Json& json, const std::string& name,
                 const std::optional<eval::Accuracy>& accuracy) {
  json[name] = accuracy ? Number(accuracy->share) : Number({});
  json[name + "_stderr"] = accuracy ? Number(accuracy->standard_error) : Number({});
}

// {"arc_easy": {"n", "skipped", "acc", ...}, ...}
Json TasksJson(std::span<const TaskResult> results) {
  Json json;
  for (const TaskResult& result : results) {
    Json task;
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

void PutText(Json& json, double nll, double perplexity) {
  json["perplexity"] = perplexity;
  json["nll"] = nll;
}

}  // namespace

std::string ComparedText(std::string_view model, const eval::ModelComparison& text) {
  return fmt::format("{}: perplexity {}, {:+.2f}%, mean KL {:.3g}, top-1 {:.2f}%", model,
                     FormatPerplexity(text.perplexity()), 100 * text.change(), text.kl,
                     100 * text.top1);
}

std::string QuantText(std::span<const QuantRow> rows) {
  std::string text;
  if (rows[1].text) text += TextTable(rows);
  if (rows[1].text && !rows[1].tasks.empty()) text += "\n";
  if (!rows[1].tasks.empty()) text += TaskTable(rows);
  return text;
}

void PutQuant(Json& json, std::span<const QuantRow> rows) {
  json["models"] = Json::array();
  for (const QuantRow& row : rows) {
    Json model;
    model["model"] = row.model;
    if (row.text) {
      const eval::ModelComparison& text = *row.text;
      PutText(model, text.nll, text.perplexity());
      model["change"] = text.change();
      model["kl"] = text.kl;
      model["top1"] = text.top1;
      model["worst"] = {{"kl", text.worst.kl},
                        {"text", text.worst.reference.text},
                        {"position", text.worst.reference.position},
                        {"token", text.worst.reference.token}};
    } else if (const auto& any = rows[1].text) {
      PutText(model, any->reference_nll, any->reference_perplexity());
    }
    if (!row.tasks.empty()) model["results"] = TasksJson(row.tasks);
    json["models"].push_back(std::move(model));
  }
}

std::string ComparedTokenJson(std::string_view model, const eval::ComparedToken& compared) {
  return console::JsonLine({{"model", model},
                            {"text", compared.reference.text},
                            {"position", compared.reference.position},
                            {"token", compared.reference.token},
                            {"reference_nll", compared.reference.nll},
                            {"nll", compared.nll},
                            {"kl", compared.kl},
                            {"agrees", compared.agrees}});
}

}  // namespace godwit::lab
