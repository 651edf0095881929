#include "lab/reports/comparison_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "console/terminal/table.h"
#include "eval/suites/bootstrap.h"
#include "lab/answer_file.h"

namespace godwit::lab {
namespace {

using eval::MeanInterval;

// Longer names of policies are told once, above the table.
constexpr size_t kLongestHeading = 32;

// The score of a row's policy, as the table shows it.
MeanInterval ScoreOf(const ComparedRow& row, size_t kv, uint64_t seed) {
  return eval::Bootstrap(row.scores[kv], seed);
}

// The difference between a policy and the first one, on the same samples.
MeanInterval DifferenceOf(const ComparedRow& row, size_t kv, uint64_t seed) {
  std::vector<double> differences;
  for (size_t i = 0; i < row.scores[kv].size(); ++i) {
    differences.push_back(row.scores[kv][i] - row.scores[0][i]);
  }
  return eval::Bootstrap(differences, seed);
}

MeanInterval Shown(const ComparedRow& row, MeanInterval interval) {
  if (!row.exponential) return interval;
  return {.mean = std::exp(interval.mean),
          .low = std::exp(interval.low),
          .high = std::exp(interval.high)};
}

std::string IntervalText(const char* format, const MeanInterval& interval) {
  return fmt::format("{} [{}, {}]", fmt::format(fmt::runtime(format), interval.mean),
                     fmt::format(fmt::runtime(format), interval.low),
                     fmt::format(fmt::runtime(format), interval.high));
}

std::string Cell(const ComparedRow& row, const nlohmann::ordered_json& value) {
  if (value.is_null()) return row.sums_up ? "all" : "-";
  if (value.is_string()) return value.get<std::string>();
  const auto number = value.get<double>();
  return fmt::format(fmt::runtime(number < 100 ? "{:g}" : "{:.0f}"), number);
}

// The headings of policies, and the lines that tell what they stand for.
struct Headings {
  std::vector<std::string> names;
  std::string legend;
};

Headings HeadingsOf(std::span<const std::string> kvs) {
  const auto is_long = [](const std::string& kv) { return kv.size() > kLongestHeading; };
  if (std::ranges::none_of(kvs, is_long)) return {.names = {kvs.begin(), kvs.end()}, .legend = {}};
  Headings headings;
  for (const std::string& kv : kvs) {
    headings.names.push_back(fmt::format("#{}", headings.names.size() + 1));
    headings.legend += fmt::format("{}  {}\n", headings.names.back(), kv);
  }
  headings.legend += '\n';
  return headings;
}

}  // namespace

ComparedRow& PolicyComparison::Row(const ComparedRow& like) {
  const auto found = std::ranges::find(rows_, like.about, &ComparedRow::about);
  if (found != rows_.end()) return *found;
  rows_.push_back(like);
  rows_.back().scores.resize(kvs_.size());
  return rows_.back();
}

std::string PolicyComparison::SoFar(const ComparedRow& row) const {
  std::string text;
  for (size_t kv = 0; kv < kvs_.size(); ++kv) {
    const auto& scores = row.scores[kv];
    if (scores.empty()) continue;
    double mean = std::accumulate(scores.begin(), scores.end(), 0.0);
    mean /= static_cast<double>(scores.size());
    text += fmt::format(
        "{}{} {} of {}", text.empty() ? ": " : ", ", kvs_[kv],
        row.exponential ? fmt::format("{:.4g}", std::exp(mean)) : fmt::format("{:.3f}", mean),
        scores.size());
  }
  return text.empty() ? "" : DescribeSample(row.about) + text;
}

std::string PolicyComparison::Text(size_t width) const {
  if (rows_.empty()) return "";
  std::vector<console::Column> columns;
  for (const auto& [name, value] : rows_.front().about.items()) {
    columns.emplace_back(columns.empty() ? "<" + name : name);
  }
  const size_t labels = columns.size();
  columns.emplace_back("n");
  const auto [names, legend] = HeadingsOf(kvs_);
  for (const std::string& name : names) columns.emplace_back(name);
  for (const std::string& name : std::span(names).subspan(1)) {
    columns.emplace_back(name + " less " + names[0]);
  }
  console::Table table(columns);
  for (const ComparedRow& row : rows_) {
    if (row.scores[0].empty()) continue;
    std::vector<std::string> cells;
    for (const auto& value : row.about) cells.push_back(Cell(row, value));
    cells.push_back(fmt::format("{}", row.scores[0].size()));
    const char* const format = row.exponential ? "{:.4g}" : "{:.3f}";
    for (size_t kv = 0; kv < kvs_.size(); ++kv) {
      const MeanInterval score = Shown(row, ScoreOf(row, kv, seed_));
      cells.push_back(kvs_.size() == 1 ? IntervalText(format, score)
                                       : fmt::format(fmt::runtime(format), score.mean));
    }
    for (size_t kv = 1; kv < kvs_.size(); ++kv) {
      cells.push_back(IntervalText(row.exponential ? "×{:.3f}" : "{:+.3f}",
                                   Shown(row, DifferenceOf(row, kv, seed_))));
    }
    table.AddRow(std::move(cells));
  }
  return legend + table.InGroups(labels, width);
}

nlohmann::ordered_json PolicyComparison::Json() const {
  using Json = nlohmann::ordered_json;
  const auto list = [](const MeanInterval& interval) {
    return Json{interval.mean, interval.low, interval.high};
  };
  Json cells = Json::array();
  for (const ComparedRow& row : rows_) {
    if (row.scores[0].empty()) continue;
    for (size_t kv = 0; kv < kvs_.size(); ++kv) {
      Json cell = row.about;
      cell["kv"] = kvs_[kv];
      cell["n"] = row.scores[kv].size();
      cell["score"] = list(Shown(row, ScoreOf(row, kv, seed_)));
      if (kv > 0) {
        cell[row.exponential ? "times" : "difference"] =
            list(Shown(row, DifferenceOf(row, kv, seed_)));
      }
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

}  // namespace godwit::lab
