#include "lab/reports/quantize_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/machine_memory.h"
#include "checkpoint/weight_facts.h"
#include "console/terminal/table.h"
#include "quant/linear_layers.h"

namespace godwit::lab {
namespace {

// Lines in the order of their first appearance, and how often each came.
class CountedLines {
 public:
  void Add(const std::string& line) {
    const auto found =
        std::ranges::find(lines_, line, [](const auto& counted) { return counted.first; });
    if (found == lines_.end()) {
      lines_.emplace_back(line, 1);
    } else {
      ++found->second;
    }
  }

  void AddTo(console::Table& facts, std::string title) const {
    for (const auto& [line, count] : lines_) {
      facts.Add(std::exchange(title, ""), count > 1 ? fmt::format("{}  x {}", line, count) : line);
    }
  }

 private:
  std::vector<std::pair<std::string, int64_t>> lines_;
};

}  // namespace

std::string PlanText(const quant::ModelPlan& model, const quant::Scheme& scheme) {
  const quant::QuantPlan& plan = model.plan;
  CountedLines quantized, int8, kept, smoothed, left_out;
  for (const LinearTensors* linear : plan.linears) {
    for (const quant::MatrixPart& part : quant::PartsOf(*linear)) {
      (plan.int8.contains(linear) ? int8 : quantized).Add(WithoutNumbers(ModuleName(part)));
    }
  }
  for (const std::string& name : plan.ignore) kept.Add(WithoutNumbers(name));
  for (const quant::SmoothGroup& group : plan.smooth.groups) {
    smoothed.Add(WithoutNumbers(group.name));
  }
  for (const quant::LeftOut& part : plan.smooth.left_out) {
    left_out.Add(fmt::format("{}: {}", WithoutNumbers(part.name), part.reason));
  }
  console::Table facts = console::Facts();
  facts.Add("scheme", fmt::format("{}: {}", scheme.name, scheme.description));
  quantized.AddTo(facts, scheme.has_groups() ? "4 bits" : "int8");
  int8.AddTo(facts, "int8");
  kept.AddTo(facts, "float");
  smoothed.AddTo(facts, "smoothed");
  left_out.AddTo(facts, "left out");
  return facts.Add("weights", DescribeSizes(model)).Take();
}

std::string DescribeAlphas(const quant::Smoothing& smoothing) {
  if (smoothing.alphas.empty()) return "none";
  const auto [low, high] = std::ranges::minmax(smoothing.alphas);
  return low == high ? fmt::format("{:g}", low) : fmt::format("{:g} to {:g}", low, high);
}

std::string CurveText(const quant::Smoothing& smoothing) {
  console::Table table({{"alpha", "{:g}"}, "<error of the outputs"});
  const std::vector<float> alphas = quant::AlphaGrid();
  const auto best = std::ranges::min_element(smoothing.curve);
  for (auto error = smoothing.curve.begin(); error != smoothing.curve.end(); ++error) {
    table.Add(alphas[error - smoothing.curve.begin()],
              fmt::format("{:.3e}{}", *error, error == best ? "  least" : ""));
  }
  return table.Take();
}

void PutSmoothing(nlohmann::ordered_json& json, const quant::Smoothing& smoothing) {
  json["alphas"] = smoothing.alphas;
  json["search"] = nullptr;
  const std::vector<float> alphas = quant::AlphaGrid();
  for (size_t i = 0; i < smoothing.curve.size(); ++i) {
    json["search"].push_back({{"alpha", alphas[i]}, {"error", smoothing.curve[i]}});
  }
}

std::string DescribeSizes(const quant::ModelPlan& plan) {
  return fmt::format(
      "{} -> {} ({:.2f})", FormatBytes(plan.before_bytes), FormatBytes(plan.after_bytes),
      static_cast<double>(plan.after_bytes) / static_cast<double>(plan.before_bytes));
}

}  // namespace godwit::lab
