#include "lab/reports/recall_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "console/terminal/table.h"

namespace godwit::lab {
namespace {

template <typename Sum>
double Mean(Sum sum, int64_t count) {
  return static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(1, count));
}

}  // namespace

nlohmann::ordered_json RecallJson(std::span<const std::string> kvs,
                                  std::span<const Recall> recalls) {
  auto policies = nlohmann::ordered_json::array();
  for (size_t i = 0; i < recalls.size(); ++i) {
    const Recall& recall = recalls[i];
    nlohmann::ordered_json policy = {{"kv", kvs[i]}};
    for (size_t k = 0; k < recall.held.size(); ++k) {
      policy[fmt::format("recall_{}", Recall::kHeaviest[k])] = Mean(recall.held[k], recall.heads);
    }
    policy["weight"] = Mean(recall.weight, recall.heads);
    policy["error"] = Mean(recall.error, recall.heads);
    policy["seen_keys"] = Mean(recall.seen_keys, recall.heads);
    policy["index_bytes"] = Mean(recall.index_bytes, recall.tokens);
    policies.push_back(std::move(policy));
  }
  return policies;
}

std::string RecallText(std::span<const std::string> kvs, std::span<const Recall> recalls) {
  std::vector<console::Column> columns = {"<kv"};
  for (const int64_t heaviest : Recall::kHeaviest) {
    columns.emplace_back(fmt::format("heaviest {}", heaviest));
  }
  for (const char* heading : {"weight", "error", "keys", "index bytes"})
    columns.emplace_back(heading);
  console::Table table(columns);
  for (size_t i = 0; i < recalls.size(); ++i) {
    const Recall& recall = recalls[i];
    std::vector<std::string> cells = {kvs[i]};
    const auto add_share = [&](double sum) {
      cells.push_back(fmt::format("{:.3f}", Mean(sum, recall.heads)));
    };
    for (const double held : recall.held) add_share(held);
    add_share(recall.weight);
    add_share(recall.error);
    cells.push_back(fmt::format("{:.0f}", Mean(recall.seen_keys, recall.heads)));
    cells.push_back(fmt::format("{:.0f}", Mean(recall.index_bytes, recall.tokens)));
    table.AddRow(std::move(cells));
  }
  return table.Take();
}

}  // namespace godwit::lab
