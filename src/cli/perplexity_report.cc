#include "cli/perplexity_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "chat/result_json.h"
#include "cli/terminal/format.h"
#include "cli/terminal/summary.h"

namespace godwit::cli {
namespace {

double Rate(int64_t tokens, double ms) {
  return ms > 0 ? 1000 * static_cast<double>(tokens) / ms : 0;
}

double TokensPerSecond(const eval::PerplexityResult& result) {
  return Rate(result.tokens, result.elapsed_ms);
}

}  // namespace

std::string FormatPerplexity(double perplexity) {
  return perplexity < 1e6 ? fmt::format("{:.3f}", perplexity) : fmt::format("{:.3e}", perplexity);
}

std::string PerplexityText(const eval::PerplexityResult& result) {
  std::string text = fmt::format(
      "perplexity  {} ({:.4f} nats per token)\n"
      "scored      {}, {:.2f} s ({} tokens/s)\n"
      "kv          {}\n\n"
      "{:<19}  {:>9}  {:>8}  {:>10}  {:>8}\n",
      FormatPerplexity(result.perplexity), result.nll, Plural(result.tokens, "token"),
      result.elapsed_ms / 1000, FormatRate(TokensPerSecond(result)), DescribeKv(result.kv),
      "positions", "tokens", "nll", "perplexity", "tokens/s");
  for (const eval::Bucket& bucket : result.buckets) {
    text += fmt::format("{:<19}  {:>9}  {:>8.4f}  {:>10}  {:>8}\n",
                        fmt::format("{} to {}", bucket.begin, bucket.end - 1), bucket.tokens,
                        bucket.nll, FormatPerplexity(std::exp(bucket.nll)),
                        FormatRate(Rate(bucket.tokens, bucket.ms)));
  }
  return text;
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
  std::string text = fmt::format("{:<20}  {:>10}  {:>8}  {:>9}  {:>9}  {:>10}\n", "kv",
                                 "perplexity", "nll", "tokens", "kept", "tokens/s");
  for (const auto& result : results) {
    text += fmt::format("{:<20}  {:>10}  {:>8.4f}  {:>9}  {:>9}  {:>10}\n", result.kv.policy,
                        FormatPerplexity(result.perplexity), result.nll, result.tokens,
                        result.kv.kept, FormatRate(TokensPerSecond(result)));
  }
  text += fmt::format("\n{:<19}", "perplexity at");
  for (const auto& result : results) text += fmt::format("  {:>16}", result.kv.policy);
  text += "\n";
  // The runs score the same tokens, so their buckets are the same.
  for (size_t i = 0; i < results.front().buckets.size(); ++i) {
    const eval::Bucket& bucket = results.front().buckets[i];
    text += fmt::format("{:<19}", fmt::format("{} to {}", bucket.begin, bucket.end - 1));
    for (const auto& result : results) {
      text += fmt::format("  {:>16}", FormatPerplexity(std::exp(result.buckets[i].nll)));
    }
    text += "\n";
  }
  return text;
}

}  // namespace godwit::cli
