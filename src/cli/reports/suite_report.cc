#include "cli/reports/suite_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/terminal/table.h"
#include "eval/suites/bootstrap.h"

namespace godwit::cli {
namespace {

using eval::MeanInterval;

// Of the other policies against the first.
std::vector<double> Differences(const SuiteRow& row, size_t kv) {
  std::vector<double> differences;
  for (size_t i = 0; i < row.scores[kv].size(); ++i) {
    differences.push_back(row.scores[kv][i] - row.scores[0][i]);
  }
  return differences;
}

std::string Text(const MeanInterval& interval, const char* sign) {
  const std::string format = fmt::format("{{:{0}.3f}} [{{:{0}.3f}}, {{:{0}.3f}}]", sign);
  return fmt::format(fmt::runtime(format), interval.mean, interval.low, interval.high);
}

void Merge(SuiteRow& all, const SuiteRow& row) {
  all.scores.resize(row.scores.size());
  for (size_t kv = 0; kv < row.scores.size(); ++kv) {
    all.scores[kv].insert(all.scores[kv].end(), row.scores[kv].begin(), row.scores[kv].end());
  }
}

// With those of all depths behind them.
std::vector<SuiteRow> WithSums(std::span<const SuiteRow> rows) {
  std::vector<SuiteRow> all;
  for (size_t i = 0; i < rows.size();) {
    SuiteRow sum{.task = rows[i].task, .length_tokens = rows[i].length_tokens, .depth = {}};
    const size_t begin = i;
    for (;
         i < rows.size() && rows[i].task == sum.task && rows[i].length_tokens == sum.length_tokens;
         ++i) {
      all.push_back(rows[i]);
      Merge(sum, rows[i]);
    }
    if (i - begin > 1) all.push_back(std::move(sum));
  }
  return all;
}

}  // namespace

std::string SuiteText(std::span<const std::string> kvs, std::span<const SuiteRow> rows,
                      uint64_t seed) {
  std::vector<Column> columns = {"<task", "length", "depth", "n"};
  for (const std::string& kv : kvs) columns.emplace_back(kv);
  for (const std::string& kv : kvs.subspan(1)) columns.emplace_back(kv + " less " + kvs[0]);
  const bool has_depths = rows.front().depth.has_value();
  Table table(columns);
  for (const SuiteRow& row : WithSums(rows)) {
    std::vector<std::string> cells = {row.task, fmt::format("{}", row.length_tokens),
                                      row.depth    ? fmt::format("{:g}", *row.depth)
                                      : has_depths ? "all"
                                                   : "-",
                                      fmt::format("{}", row.scores[0].size())};
    for (size_t kv = 0; kv < kvs.size(); ++kv) {
      const MeanInterval interval = eval::Bootstrap(row.scores[kv], seed);
      cells.push_back(kvs.size() == 1 ? Text(interval, "") : fmt::format("{:.3f}", interval.mean));
    }
    for (size_t kv = 1; kv < kvs.size(); ++kv) {
      cells.push_back(Text(eval::Bootstrap(Differences(row, kv), seed), "+"));
    }
    table.AddRow(std::move(cells));
  }
  return table.Take();
}

nlohmann::ordered_json SuiteJson(std::span<const std::string> kvs, std::span<const SuiteRow> rows,
                                 uint64_t seed) {
  using Json = nlohmann::ordered_json;
  const auto list = [](const MeanInterval& interval) {
    return Json{interval.mean, interval.low, interval.high};
  };
  Json cells = Json::array();
  for (const SuiteRow& row : WithSums(rows)) {
    for (size_t kv = 0; kv < kvs.size(); ++kv) {
      Json cell{{"task", row.task},
                {"length", row.length_tokens},
                {"depth", row.depth ? Json(*row.depth) : Json()},
                {"kv", kvs[kv]},
                {"n", row.scores[kv].size()},
                {"score", list(eval::Bootstrap(row.scores[kv], seed))}};
      if (kv > 0) cell["difference"] = list(eval::Bootstrap(Differences(row, kv), seed));
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

}  // namespace godwit::cli
