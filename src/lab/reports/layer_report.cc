#include "lab/reports/layer_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/quote.h"
#include "console/terminal/format.h"
#include "console/terminal/json_output.h"
#include "console/terminal/table.h"

namespace godwit::lab {
namespace {

using bench::LayerCount;
using bench::LayerPart;
using console::FormatRate;

// A cell, empty for nothing.
std::string Cell(double value) { return value > 0 ? fmt::format("{:.4g}", value) : ""; }
std::string Ms(double seconds) { return Cell(1e3 * seconds); }

std::string CountText(const LayerCount& count) {
  console::Table table({"<part", "G multiply-adds", "at peak, ms", "MB of memory", "read, ms",
                        "MB of cache", "read, ms", "alone, ms", "% of its limit"});
  for (const LayerPart& part : count.parts) {
    const double limit = part.limit_seconds();
    table.Add(part.name, Cell(part.multiply_adds / 1e9), Ms(part.multiply_seconds),
              Cell(part.memory_bytes / 1e6), Ms(part.memory_seconds), Cell(part.cache_bytes / 1e6),
              Ms(part.cache_seconds), Ms(part.seconds),
              limit > 0 ? fmt::format("{:.0f}", 100 * limit / part.seconds) : "");
  }
  const double alone = count.alone_seconds(), in_order = count.in_order_seconds;
  const double limit = count.limit_seconds(), overlapped = count.overlapped_seconds();
  return fmt::format(
      "\n"
      "{} behind {}, on one thread; limits: products {} Gop/s, attention {} Gop/s, memory {} GB/s, "
      "second-level cache {} GB/s\n"
      "\n"
      "{}"
      "\n"
      "the parts, each alone: {} ms; one after the other: {} ms\n"
      "at the limit of each part: {} ms ({:.0f} %); if all parts overlapped: {} ms ({:.0f} %)\n",
      console::Plural(count.options.rows, "row"), console::Plural(count.options.depth, "token"),
      FormatRate(2 * count.product_peak / 1e9), FormatRate(2 * count.attention_peak / 1e9),
      FormatRate(count.memory_bytes_per_second / 1e9),
      FormatRate(count.cache_bytes_per_second / 1e9), table.Markdown(), Ms(alone), Ms(in_order),
      Ms(limit), 100 * limit / in_order, Ms(overlapped), 100 * overlapped / in_order);
}

}  // namespace

std::string LayerText(const LayerReport& report, std::span<const LayerCount> counts) {
  std::string text =
      fmt::format("{}: one layer, {} weights, kv {}, {}\n", QuoteUnlessPlain(report.model),
                  report.weights, report.kv_type, report.isa);
  for (const LayerCount& count : counts) text += CountText(count);
  return text;
}

std::string LayerJson(const LayerReport& report, std::span<const LayerCount> counts) {
  using Json = nlohmann::ordered_json;
  Json json = Json::array();
  for (const LayerCount& count : counts) {
    Json parts = Json::array();
    for (const LayerPart& part : count.parts) {
      parts.push_back({{"part", part.name},
                       {"inside", part.inside},
                       {"multiply_adds", part.multiply_adds},
                       {"memory_bytes", part.memory_bytes},
                       {"cache_bytes", part.cache_bytes},
                       {"multiply_s", part.multiply_seconds},
                       {"memory_s", part.memory_seconds},
                       {"cache_s", part.cache_seconds},
                       {"alone_s", part.seconds}});
    }
    json.push_back({{"model", report.model},
                    {"weights", report.weights},
                    {"kv_type", report.kv_type},
                    {"isa", report.isa},
                    {"rows", count.options.rows},
                    {"n_depth", count.options.depth},
                    {"product_peak", 2 * count.product_peak},
                    {"attention_peak", 2 * count.attention_peak},
                    {"memory_bandwidth", count.memory_bytes_per_second},
                    {"cache_bandwidth", count.cache_bytes_per_second},
                    {"parts", std::move(parts)},
                    {"alone_s", count.alone_seconds()},
                    {"in_order_s", count.in_order_seconds},
                    {"limit_s", count.limit_seconds()},
                    {"overlapped_s", count.overlapped_seconds()}});
  }
  return console::JsonText(json);
}

}  // namespace godwit::lab
