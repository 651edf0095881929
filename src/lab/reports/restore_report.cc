#include "lab/reports/restore_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/machine_memory.h"
#include "console/terminal/table.h"

namespace godwit::lab {
namespace {

std::string Seconds(double seconds) { return fmt::format("{:.3g} s", seconds); }

std::string ByteRate(const bench::RestoreResult& result, double seconds) {
  return fmt::format("{:.2f} GB/s", static_cast<double>(result.bytes) / seconds / 1e9);
}

}  // namespace

std::string RestoreText(std::span<const bench::RestoreResult> results) {
  console::Table table({"tokens", "size", "saved at", "disk read at", "opened in", "restored, cold",
                        "% of disk", "restored, warm", "first token, cold", "warm", "from memory"});
  for (const bench::RestoreResult& result : results) {
    table.Add(result.tokens, FormatBytes(result.bytes), ByteRate(result, result.save),
              ByteRate(result, result.disk), Seconds(result.open),
              ByteRate(result, result.restore_cold),
              fmt::format("{:.0f}", 100 * result.disk / result.restore_cold),
              ByteRate(result, result.restore_warm), Seconds(result.first_token_cold),
              Seconds(result.first_token_warm), Seconds(result.first_token_memory));
  }
  return fmt::format("\n{}", table.Markdown());
}

std::string RestoreJson(std::span<const bench::RestoreResult> results) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const bench::RestoreResult& result : results) {
    all.push_back({{"tokens", result.tokens},
                   {"bytes", result.bytes},
                   {"save_s", result.save},
                   {"disk_read_s", result.disk},
                   {"open_s", result.open},
                   {"restore_cold_s", result.restore_cold},
                   {"restore_warm_s", result.restore_warm},
                   {"first_token_cold_s", result.first_token_cold},
                   {"first_token_warm_s", result.first_token_warm},
                   {"first_token_memory_s", result.first_token_memory},
                   {"logits_agree", result.logits_agree}});
  }
  return all.dump(2) + "\n";
}

}  // namespace godwit::lab
