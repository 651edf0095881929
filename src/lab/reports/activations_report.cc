#include "lab/reports/activations_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/name_list.h"
#include "console/terminal/table.h"

namespace godwit::lab {
namespace {

constexpr size_t kNamedChannels = 4;

constexpr const char* kUnreached = "no token of the text reaches it";
constexpr const char* kUnsmoothed = "not smoothed";

// "72.6 x"; empty if most channels are silent.
std::string DescribeRatio(const Outliers& outliers) {
  return outliers.median > 0 ? fmt::format("{:.3g} x", outliers.ratio()) : "";
}

std::string Digits(float x) { return fmt::format("{:.3g}", x); }

void AddRow(console::Table& table, const char* name, const std::vector<float>& maxima) {
  if (maxima.empty()) {
    table.Add(name, "", "", "", kUnreached);
    return;
  }
  const Outliers outliers = FindOutliers(maxima);
  table.Add(name, Digits(outliers.largest), Digits(outliers.median), DescribeRatio(outliers),
            NameList(outliers.channels, [&](size_t channel) {
              return fmt::format("{}: {:.3g}", channel, maxima[channel]);
            }));
}

}  // namespace

Outliers FindOutliers(const std::vector<float>& maxima) {
  std::vector<size_t> order(maxima.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t channel) { return maxima[channel]; });
  Outliers outliers{.largest = maxima[order.front()], .median = maxima[order[order.size() / 2]]};
  order.resize(std::min(order.size(), kNamedChannels));
  outliers.channels = std::move(order);
  return outliers;
}

std::string MaximaText(std::span<const quant::LinearMaxima> linears) {
  std::string text;
  for (const quant::LinearMaxima& linear : linears) {
    console::Table table({"<channels", "largest", "median", "ratio", "<the largest ones"},
                         /*indent=*/2);
    AddRow(table, "|x|", linear.before.inputs);
    if (linear.after) AddRow(table, "|x| smoothed", linear.after->inputs);
    AddRow(table, "|W|", linear.before.weights);
    if (linear.after) AddRow(table, "|W| smoothed", linear.after->weights);
    if (!linear.after) table.Add(kUnsmoothed);
    text += fmt::format("\n{}\n{}", linear.name, table.Take());
  }
  return text;
}

nlohmann::ordered_json MaximaJson(std::span<const quant::LinearMaxima> linears) {
  auto json = nlohmann::ordered_json::array();
  for (const quant::LinearMaxima& linear : linears) {
    nlohmann::ordered_json object = {
        {"name", linear.name},
        {"inputs", {{"before", linear.before.inputs}, {"after", nullptr}}},
        {"weights", {{"before", linear.before.weights}, {"after", nullptr}}}};
    if (linear.after) {
      object["inputs"]["after"] = linear.after->inputs;
      object["weights"]["after"] = linear.after->weights;
    }
    json.push_back(std::move(object));
  }
  return json;
}

}  // namespace godwit::lab
