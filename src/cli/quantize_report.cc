#include "cli/quantize_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/machine_memory.h"
#include "checkpoint/weight_facts.h"
#include "quant/linears.h"

namespace godwit::cli {
namespace {

// Lines in the order in which they first came, and how often.
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

  std::string Text(const std::string& title) const {
    std::string text;
    for (const auto& [line, count] : lines_) {
      text += fmt::format("{:<12}{}{}\n", text.empty() ? title : "", line,
                          count > 1 ? fmt::format("  x {}", count) : "");
    }
    return text;
  }

 private:
  std::vector<std::pair<std::string, int64_t>> lines_;
};

}  // namespace

std::string PlanText(const quant::ModelPlan& model, const quant::Scheme& scheme) {
  const quant::QuantPlan& plan = model.plan;
  CountedLines int8, kept, smoothed, left_out;
  for (const LinearTensors* linear : plan.linears) {
    for (const TensorInfo* part : linear->parts) int8.Add(WithoutNumbers(ModuleName(*part)));
  }
  for (const std::string& name : plan.ignore) kept.Add(WithoutNumbers(name));
  for (const quant::SmoothGroup& group : plan.smooth.groups) {
    smoothed.Add(WithoutNumbers(group.name));
  }
  for (const quant::LeftOut& part : plan.smooth.left_out) {
    left_out.Add(fmt::format("{}: {}", WithoutNumbers(part.name), part.reason));
  }
  return fmt::format("{:<12}{}: {}\n", "scheme", scheme.name, scheme.description) +
         int8.Text("int8") + kept.Text("float") + smoothed.Text("smoothed") +
         left_out.Text("left out") + DescribeSizes(model);
}

std::string DescribeAlphas(const quant::Smoothing& smoothing) {
  if (smoothing.alphas.empty()) return "none";
  const auto [low, high] = std::ranges::minmax(smoothing.alphas);
  return low == high ? fmt::format("{:g}", low) : fmt::format("{:g} to {:g}", low, high);
}

std::string CurveText(const quant::Smoothing& smoothing) {
  std::string text = fmt::format("{:>6}  {}\n", "alpha", "error of the outputs");
  const std::vector<float> alphas = quant::AlphaGrid();
  const auto best = std::ranges::min_element(smoothing.curve);
  for (auto at = smoothing.curve.begin(); at != smoothing.curve.end(); ++at) {
    text +=
        fmt::format("{:>6g}  {:.3e}{}\n", alphas[static_cast<size_t>(at - smoothing.curve.begin())],
                    *at, at == best ? "  least" : "");
  }
  return text;
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
      "{:<12}{} -> {} ({:.2f})\n", "weights", FormatBytes(plan.before_bytes),
      FormatBytes(plan.after_bytes),
      static_cast<double>(plan.after_bytes) / static_cast<double>(plan.before_bytes));
}

}  // namespace godwit::cli
