#include "cli/quant_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/perplexity_report.h"
#include "cli/terminal/json_output.h"

namespace godwit::cli {
namespace {

using Json = nlohmann::ordered_json;

size_t ModelColumns(std::span<const QuantRow> rows) {
  size_t columns = 5;  // "model"
  for (const QuantRow& row : rows) columns = std::max(columns, row.model.size());
  return columns;
}

std::string TextTable(std::span<const QuantRow> rows) {
  const size_t columns = ModelColumns(rows);
  // Every comparison has measured the reference on the same tokens.
  const eval::Comparison& any = *rows[1].text;
  std::string text = fmt::format("{:<{}}  {:>10}  {:>9}  {:>9}  {:>7}  {:>8}\n", "model", columns,
                                 "perplexity", "change", "mean KL", "top-1", "worst KL");
  text += fmt::format("{:<{}}  {:>10}\n", rows[0].model, columns,
                      FormatPerplexity(any.reference_perplexity()));
  for (const QuantRow& row : rows.subspan(1)) {
    text += fmt::format("{:<{}}  {:>10}  {:>+8.2f}%  {:>9.3g}  {:>6.2f}%  {:>8.3g}\n", row.model,
                        columns, FormatPerplexity(row.text->perplexity()), 100 * row.text->change(),
                        row.text->kl, 100 * row.text->top1, row.text->worst.kl);
  }
  return text + fmt::format("{} tokens; KL in nats per token\n", any.tokens);
}

// The mean of the tasks that were scored, as the paper's tables have it.
std::string MeanAccuracy(std::span<const TaskResult> tasks) {
  double sum = 0;
  int64_t scored = 0;
  for (const TaskResult& task : tasks) {
    if (!task.tally.acc()) continue;
    sum += task.tally.acc()->share;
    ++scored;
  }
  return scored == 0 ? "-" : fmt::format("{:.4f}", sum / static_cast<double>(scored));
}

std::string TaskTable(std::span<const QuantRow> rows) {
  const size_t columns = ModelColumns(rows);
  const auto width = [](const TaskResult& task) {
    return std::max<size_t>(task.task->name.size(), 15);  // of AccuracyText
  };
  std::string text = fmt::format("{:<{}}", "model", columns);
  for (const TaskResult& task : rows[0].tasks) {
    text += fmt::format("  {:>{}}", task.task->name, width(task));
  }
  text += "    mean\n";
  for (const QuantRow& row : rows) {
    text += fmt::format("{:<{}}", row.model, columns);
    for (const TaskResult& task : row.tasks) {
      text += fmt::format("  {:>{}}", AccuracyText(task.tally.acc()), width(task));
    }
    text += fmt::format("  {:>6}\n", MeanAccuracy(row.tasks));
  }
  for (const QuantRow& row : rows) text += SkippedText(row.tasks, row.max_tokens, row.model);
  return text;
}

void PutText(Json& json, double nll, double perplexity) {
  json["perplexity"] = perplexity;
  json["nll"] = nll;
}

}  // namespace

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
      const eval::Comparison& text = *row.text;
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
  return JsonLine({{"model", model},
                   {"text", compared.reference.text},
                   {"position", compared.reference.position},
                   {"token", compared.reference.token},
                   {"reference_nll", compared.reference.nll},
                   {"nll", compared.nll},
                   {"kl", compared.kl},
                   {"agrees", compared.agrees}});
}

}  // namespace godwit::cli
