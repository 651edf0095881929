#include "lab/reports/perplexity_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "chat/result_json.h"
#include "cli/summary.h"
#include "console/terminal/format.h"
#include "console/terminal/table.h"

namespace godwit::lab {
namespace {

double TokensPerSecond(const eval::PerplexityResult& result) {
  return cli::TokenRate(result.tokens, result.elapsed_ms);
}

std::string Positions(const eval::Bucket& bucket) {
  return fmt::format("{} to {}", bucket.begin, bucket.end - 1);
}

}  // namespace

std::string FormatPerplexity(double perplexity) {
  return perplexity < 1e6 ? fmt::format("{:.3f}", perplexity) : fmt::format("{:.3e}", perplexity);
}

std::string PerplexityText(const eval::PerplexityResult& result) {
  console::Table table({"<positions", "tokens", {"nll", "{:.4f}"}, "perplexity", "tokens/s"});
  for (const eval::Bucket& bucket : result.buckets) {
    table.Add(Positions(bucket), bucket.tokens, bucket.nll, FormatPerplexity(std::exp(bucket.nll)),
              console::FormatRate(cli::TokenRate(bucket.tokens, bucket.ms)));
  }
  return console::Facts()
             .Add("perplexity", fmt::format("{} ({:.4f} nats per token)",
                                            FormatPerplexity(result.perplexity), result.nll))
             .Add("scored",
                  fmt::format("{}, {:.2f} s ({} tokens/s)", console::Plural(result.tokens, "token"),
                              result.elapsed_ms / 1000,
                              console::FormatRate(TokensPerSecond(result))))
             .Add("kv", cli::DescribeKv(result.kv))
             .Take() +
         "\n" + table.Take();
}

nlohmann::ordered_json PerplexityJson(const eval::PerplexityResult& result,
                                      const eval::PerplexityOptions& options) {
  nlohmann::ordered_json json;
  json["perplexity"] = result.perplexity;
  json["nll"] = result.nll;
  json["tokens"] = result.tokens;
  json["tokens_per_second"] = TokensPerSecond(result);
  json["elapsed_ms"] = result.elapsed_ms;
  json["kv"] = chat::KvJson(result.kv);
  json["window"] = nullptr;
  json["stride"] = nullptr;
  if (const int64_t window = options.window_tokens; window > 0) {
    json["window"] = window;
    json["stride"] = options.stride_tokens > 0 ? options.stride_tokens : window;
  }
  if (options.query_tokens > 0) json["query_tokens"] = options.query_tokens;
  json["buckets"] = nlohmann::ordered_json::array();
  for (const eval::Bucket& bucket : result.buckets) {
    json["buckets"].push_back({{"begin", bucket.begin},
                               {"end", bucket.end},
                               {"nll", bucket.nll},
                               {"perplexity", std::exp(bucket.nll)},
                               {"tokens", bucket.tokens},
                               {"ms", bucket.ms}});
  }
  return json;
}

std::string ComparisonText(std::span<const eval::PerplexityResult> results) {
  console::Table table({"<kv", "perplexity", {"nll", "{:.4f}"}, "tokens", "kept", "tokens/s"});
  std::vector<console::Column> columns{"<perplexity at"};
  for (const auto& result : results) {
    table.Add(result.kv.policy, FormatPerplexity(result.perplexity), result.nll, result.tokens,
              result.kv.kept, console::FormatRate(TokensPerSecond(result)));
    columns.emplace_back(result.kv.policy);
  }
  console::Table positions(columns);
  // All runs score the same tokens, so their buckets are the same.
  for (size_t i = 0; i < results.front().buckets.size(); ++i) {
    std::vector<std::string> cells{Positions(results.front().buckets[i])};
    for (const auto& result : results) {
      cells.push_back(FormatPerplexity(std::exp(result.buckets[i].nll)));
    }
    positions.AddRow(std::move(cells));
  }
  return table.Take() + "\n" + positions.Take();
}

}  // namespace godwit::lab
