#include "cli/reports/stream_report.h"

#include <fmt/format.h>

#include "base/machine_memory.h"
#include "chat/result_json.h"
#include "cli/task_runs.h"
#include "cli/terminal/format.h"
#include "cli/terminal/json_output.h"
#include "cli/terminal/summary.h"
#include "cli/terminal/table.h"
#include "eval/task_metrics.h"

namespace godwit::cli {
namespace {

using Json = nlohmann::ordered_json;

void PutAccuracy(Json& json, int64_t right, int64_t n) {
  const auto accuracy = eval::AccuracyOf(right, n);
  json["right"] = right;
  json["accuracy"] = accuracy ? Json(accuracy->share) : Json();
  json["accuracy_stderr"] =
      accuracy && accuracy->standard_error ? Json(*accuracy->standard_error) : Json();
}

}  // namespace

std::string StreamEvalText(const eval::StreamEvalResult& result) {
  Table table({"lines", {"tokens", "{:.0f}"}, "queries", "accuracy"});
  for (const eval::DistanceResult& row : result.distances) {
    table.Add(row.distance_lines, row.distance_tokens, row.queries,
              AccuracyText(eval::AccuracyOf(row.right, row.queries)));
  }
  return table.Take() + fmt::format("\nlast stream: {}\nread: {}, {:.2f} s\n",
                                    DescribeKv(result.kv), Plural(result.tokens, "token"),
                                    result.elapsed_ms / 1000);
}

std::string StreamArcText(std::span<const ArcRun> runs) {
  Table table({"<task", "questions", "accuracy", "tokens", "<kv"});
  for (const auto& [task, result] : runs) {
    table.Add(task, result.questions,
              AccuracyText(eval::AccuracyOf(result.right, result.questions)), result.tokens,
              DescribeKv(result.kv));
  }
  return table.Take();
}

void PutStreamEval(Json& json, const eval::StreamEvalResult& result) {
  json["distances"] = Json::array();
  for (const eval::DistanceResult& row : result.distances) {
    Json distance{{"distance_lines", row.distance_lines},
                  {"distance_tokens", row.distance_tokens},
                  {"queries", row.queries}};
    PutAccuracy(distance, row.right, row.queries);
    json["distances"].push_back(std::move(distance));
  }
  json["tokens"] = result.tokens;
  json["elapsed_ms"] = result.elapsed_ms;
  json["last_kv"] = chat::KvJson(result.kv);
}

void PutStreamArc(Json& json, std::span<const ArcRun> runs) {
  for (const auto& [name, result] : runs) {
    Json task{{"questions", result.questions}};
    PutAccuracy(task, result.right, result.questions);
    task["tokens"] = result.tokens;
    task["elapsed_ms"] = result.elapsed_ms;
    task["last_kv"] = chat::KvJson(result.kv);
    json["results"][name] = std::move(task);
  }
}

std::string QueryJson(const eval::StreamQuery& query) {
  return JsonLine({{"sample", query.sample},
                   {"line", query.line},
                   {"distance_lines", query.distance_lines},
                   {"distance_tokens", query.distance_tokens},
                   {"position", query.position},
                   {"expected", query.expected},
                   {"answer", query.answer},
                   {"right", query.right}});
}

std::string AnswerJson(std::string_view task, const eval::StreamAnswer& answer) {
  return JsonLine({{"task", task},
                   {"row", answer.row},
                   {"position", answer.position},
                   {"expected", answer.expected},
                   {"answer", answer.answer},
                   {"right", answer.right}});
}

}  // namespace godwit::cli
