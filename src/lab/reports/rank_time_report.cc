#include "lab/reports/rank_time_report.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "console/terminal/format.h"
#include "console/terminal/table.h"

namespace godwit::lab {
namespace {

std::string PerSecond(double seconds_each) {
  return seconds_each > 0 ? console::FormatRate(2 / seconds_each / 1e9) + " Gop/s" : "any rate";
}

}  // namespace

std::string RankTimeText(const RankTimeReport& report) {
  std::string text = fmt::format(
      "\nA model, not a measurement: hosts like this one, matrices at {}, attention at {} (the "
      "tests above within {:.1f} %), links of {:.3g} Gbit/s, {:.3g} us\n\n",
      PerSecond(report.times.per_matrix_multiply_add),
      PerSecond(report.times.per_attention_multiply_add), 100 * report.times.worst_error,
      report.network.bytes_per_second * 8 / 1e9, report.network.seconds * 1e6);
  console::Table table({"<read by", "context", "hosts", "read, s", "waiting, s", "B/token/layer",
                        "answer, ms/token", "B/token/layer"});
  std::string refused;
  for (const std::string& prefill : report.prefills) {
    try {
      for (const int64_t context : report.contexts) {
        for (const int64_t hosts : report.hosts) {
          const auto time = bench::TimeOf(report.spec, report.layout, prefill, context,
                                          static_cast<int>(hosts), report.times, report.network);
          if (!time) {
            table.Add(prefill, context, hosts, "too short", "", "", "", "");
            continue;
          }
          table.Add(prefill, context, hosts, fmt::format("{:.1f}", time->read_seconds),
                    fmt::format("{:.1f}", time->wait_seconds),
                    fmt::format("{:.0f}", time->read_bytes),
                    time->answer_seconds ? fmt::format("{:.1f}", 1e3 * *time->answer_seconds) : "-",
                    fmt::format("{:.0f}", time->answer_bytes));
        }
      }
    } catch (const Error& error) {
      refused += fmt::format("\n{}: {}\n", prefill, error.what());
    }
  }
  return text + table.Markdown() + refused;
}

}  // namespace godwit::lab
