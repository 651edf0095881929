#include "lab/reports/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/quote.h"
#include "bench/statistics.h"
#include "cli/options/model_options.h"
#include "console/terminal/format.h"
#include "console/terminal/json_output.h"
#include "console/terminal/table.h"
#include "model/loader.h"

namespace godwit::lab {
namespace {

using Json = nlohmann::ordered_json;
using bench::LimitKind;
using bench::MachineResult;
using bench::Median;
using bench::StandardDeviation;
using bench::TestResult;

// Operations of one multiply-add: a multiplication and an addition, as other programs count.
constexpr double kOperations = 2;

double Limit(const TestResult& result) {
  const double limit = Median(result.limits);
  return result.limit_kind == LimitKind::kMultiplyPeak ? kOperations * limit : limit;
}

std::string_view LimitUnit(const TestResult& result) {
  return result.limit_kind == LimitKind::kMultiplyPeak ? "operations_per_second"
                                                       : "bytes_per_second";
}

std::string LimitText(const TestResult& result) {
  if (result.limits.empty()) return "not measured";
  const bool multiply = result.limit_kind == LimitKind::kMultiplyPeak;
  std::string name = result.limit_name;
  std::replace(name.begin(), name.end(), '_', ' ');
  return fmt::format("{} {}{}", console::FormatRate(Limit(result) / 1e9),
                     multiply ? "Gop/s " : "GB/s ", name);
}

std::string HashText(const TestResult& result) {
  return result.logits_agree ? fmt::format("{:016x}", result.logits_hash) : "differs";
}

std::string PeakText(const char* name, double multiply_adds_per_second) {
  if (multiply_adds_per_second == 0) return fmt::format(", {} as f32", name);
  return fmt::format(", {} {} Gop/s", name,
                     console::FormatRate(kOperations * multiply_adds_per_second / 1e9));
}

std::string MachineText(const MachineResult& machine) {
  return fmt::format(
      "{}: reads {} GB/s (of a buffer of {}); multiplies f32 {} Gop/s{}{}; fork-join {:.2f} us\n",
      console::Plural(machine.threads, "thread"),
      console::FormatRate(machine.read_bytes_per_second / 1e9),
      FormatBytes(machine.read_buffer_bytes),
      console::FormatRate(kOperations * machine.f32_multiply_adds_per_second / 1e9),
      PeakText("bf16", machine.bf16_multiply_adds_per_second),
      PeakText("int8", machine.int8_multiply_adds_per_second), machine.fork_join_us);
}

const MachineResult& MachineOf(const BenchReport& report, int threads) {
  return *std::find_if(report.result.machine.begin(), report.result.machine.end(),
                       [&](const MachineResult& machine) { return machine.threads == threads; });
}

Json MachineJson(const MachineResult& machine) {
  const auto operations = [](double multiply_adds) {
    return multiply_adds == 0 ? Json() : Json(kOperations * multiply_adds);
  };
  return {{"read_bandwidth", machine.read_bytes_per_second},
          {"read_buffer_bytes", machine.read_buffer_bytes},
          {"f32_peak", operations(machine.f32_multiply_adds_per_second)},
          {"bf16_peak", operations(machine.bf16_multiply_adds_per_second)},
          {"int8_peak", operations(machine.int8_multiply_adds_per_second)},
          {"fork_join_us", machine.fork_join_us}};
}

std::string FractionText(const TestResult& result) {
  if (result.fits_cache) return "in cache";
  return result.fractions.empty() ? "-" : fmt::format("{:.1f}", 100 * Median(result.fractions));
}

// Bytes that all ranks sent for one token of the test.
double SentBytes(const TestResult& result) {
  double bytes = 0;
  for (const bench::RankUse& rank : result.ranks) bytes += rank.sent_bytes;
  return bytes / static_cast<double>(result.test.texts * result.test.tokens());
}

std::string RanksText(const BenchReport& report, const TestResult& result) {
  std::string seconds;
  for (const bench::RankUse& rank : result.ranks) {
    seconds += fmt::format("{}{:.2f}", seconds.empty() ? "" : ", ", rank.cpu_seconds);
  }
  const double sent = SentBytes(result);
  return fmt::format(
      "\n{}: {} send {} a token, {:.0f} bytes in each layer; processor time of each: {} s\n",
      result.test.Label(), console::Plural(std::ssize(result.ranks), "rank"),
      FormatBytes(static_cast<int64_t>(sent)), sent / report.layers, seconds);
}

std::string GpuLimitsText(const bench::GpuLimits& limits) {
  const auto bytes = [](double per_second) { return console::FormatRate(per_second / 1e9); };
  const auto operations = [](double multiply_adds) {
    return console::FormatRate(kOperations * multiply_adds / 1e9);
  };
  return fmt::format(
      "it reads {} GB/s; multiplies bf16 {} Gop/s, int8 {} Gop/s; the bus brings {} GB/s there and "
      "{} GB/s back\n",
      bytes(limits.read_bytes_per_second), operations(limits.bf16_per_second),
      operations(limits.int8_per_second), bytes(limits.in_bytes_per_second),
      bytes(limits.out_bytes_per_second));
}

// The work of the GPU, which is counted, and its limits, which are measured.
std::string DeviceText(const BenchReport& report) {
  const bench::GpuWork& work = report.gpu_work;
  const auto operations = [](int64_t multiply_adds) {
    return console::FormatRate(kOperations * static_cast<double>(multiply_adds) / 1e9);
  };
  return fmt::format(
      "{}\n"
      "each step reads {} of weights there and waits for it {} times; a token of a prompt takes {} "
      "Gop there and {} over the bus, its logits {} Gop and {}\n"
      "{}",
      cli::DescribeDevice(*report.device), FormatBytes(work.weight_bytes), work.waits,
      operations(work.layer_multiply_adds), FormatBytes(work.layer_bus.both()),
      operations(work.head_multiply_adds), FormatBytes(work.head_bus.both()),
      report.gpu_limits ? GpuLimitsText(*report.gpu_limits) : "");
}

Json GpuLimitsJson(const bench::GpuLimits& limits) {
  return {{"read_bandwidth", limits.read_bytes_per_second},
          {"bf16_peak", kOperations * limits.bf16_per_second},
          {"int8_peak", kOperations * limits.int8_per_second},
          {"bus_in_bandwidth", limits.in_bytes_per_second},
          {"bus_out_bandwidth", limits.out_bytes_per_second}};
}

Json DeviceJson(const BenchReport& report) {
  const DeviceUse& use = *report.device;
  const bench::GpuWork& work = report.gpu_work;
  return {{"name", use.name},
          {"layers", use.layers},
          {"head", use.head},
          {"weight_bytes", use.weight_bytes},
          {"step_bytes", use.scratch_bytes},
          {"operations_per_token", kOperations * static_cast<double>(work.layer_multiply_adds)},
          {"operations_per_logits", kOperations * static_cast<double>(work.head_multiply_adds)},
          {"bus_bytes_per_token", work.layer_bus.both()},
          {"bus_bytes_per_logits", work.head_bus.both()},
          {"waits_per_step", work.waits},
          {"limits", report.gpu_limits ? GpuLimitsJson(*report.gpu_limits) : Json()}};
}

Json LimitJson(const TestResult& result) {
  return {{"kind", result.limit_name}, {"value", Limit(result)}, {"unit", LimitUnit(result)}};
}

// The shares of a test's time, of all threads together, by name. They add up to 1.
std::vector<std::pair<std::string, double>> Shares(const ProfileTimes& times) {
  const auto share = [&](int64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(std::max<int64_t>(1, times.whole_ns()));
  };
  std::vector<std::pair<std::string, double>> shares;
  for (size_t part = 0; part < kStepParts; ++part) {
    shares.emplace_back(Name(static_cast<StepPart>(part)), share(times.busy_ns[part]));
  }
  shares.emplace_back("waiting_at_joins", share(times.join_wait_ns));
  shares.emplace_back("waiting_for_one_thread", share(times.one_thread_wait_ns));
  return shares;
}

double PerStep(const bench::TestProfile& profile, int64_t count) {
  return static_cast<double>(count) / static_cast<double>(std::max<int64_t>(1, profile.steps));
}

void AddProfile(const bench::TestProfile& profile, Json& json) {
  json["step_ms"] = PerStep(profile, profile.times.wall_ns) / 1e6;
  json["step_fork_joins"] = PerStep(profile, profile.times.fork_joins);
  for (const auto& [name, share] : Shares(profile.times)) json["shares"][name] = share;
}

Json TestJson(const BenchReport& report, const TestResult& result) {
  const bool multiply = result.limit_kind == LimitKind::kMultiplyPeak;
  const bool limited = !result.limits.empty();
  Json json{{"test", result.test.Label()},
            {"model", report.model},
            {"weights", report.weights},
            {"kv_type", report.kv_type},
            {"threads", result.test.threads},
            {"tokens_per_second", Median(result.tokens_per_second)},
            {"stddev", StandardDeviation(result.tokens_per_second)},
            {"limit", limited ? LimitJson(result) : Json()},
            {"fraction", result.fractions.empty() ? Json() : Json(Median(result.fractions))},
            {"logits_hash", HashText(result)},
            {"n_prompt", result.test.prompt_tokens},
            {"n_gen", result.test.predict_tokens},
            {"n_parallel", result.test.texts},
            {"n_depth", result.test.depth_tokens},
            {"isa", report.isa},
            {"kv", result.policy},
            {"fill_kv", report.fill_kv},
            {"weight_bytes", report.weight_bytes},
            {"kv_bytes", result.kv_bytes},
            {"fits_cache", limited ? Json(result.fits_cache) : Json()},
            {multiply ? "operations_per_token" : "bytes_per_token",
             (multiply ? kOperations : 1) * result.work_per_token},
            {"samples", result.tokens_per_second}};
  if (result.file_bytes_per_token) json["file_bytes_per_token"] = *result.file_bytes_per_token;
  if (result.attention_bus_bytes_per_token) {
    json["attention_bus_bytes_per_token"] = *result.attention_bus_bytes_per_token;
  }
  if (!result.ranks.empty()) {
    json["ranks"] = result.ranks.size();
    json["sent_bytes_per_token_and_layer"] = SentBytes(result) / report.layers;
    for (const bench::RankUse& rank : result.ranks) {
      json["rank_cpu_seconds"].push_back(rank.cpu_seconds);
    }
  }
  if (result.profile) AddProfile(*result.profile, json);
  json["device"] = report.device ? DeviceJson(report) : Json();
  const bool has_machine = !report.result.machine.empty();
  json["machine"] = has_machine ? MachineJson(MachineOf(report, result.test.threads)) : Json();
  return json;
}

// A column for each test, a line for each part that takes time in some test.
std::string ProfileText(const BenchReport& report) {
  const std::vector<TestResult>& tests = report.result.tests;
  if (!tests.front().profile) return "";
  std::vector<console::Column> head = {"<% of the threads' time"};
  std::vector<std::string> steps = {"a step, ms"}, joins = {"fork-joins of a step"};
  std::vector<std::vector<std::pair<std::string, double>>> shares;
  const bool one_team = std::ranges::all_of(
      tests, [&](const TestResult& of) { return of.test.threads == tests.front().test.threads; });
  for (const TestResult& of : tests) {
    head.push_back(
        of.test.Label() +
        (one_team ? "" : fmt::format(", {}", console::Plural(of.test.threads, "thread"))));
    steps.push_back(fmt::format("{:.4g}", PerStep(*of.profile, of.profile->times.wall_ns) / 1e6));
    joins.push_back(fmt::format("{:.0f}", PerStep(*of.profile, of.profile->times.fork_joins)));
    shares.push_back(Shares(of.profile->times));
  }
  console::Table table(head);
  for (size_t part = 0; part < shares.front().size(); ++part) {
    if (std::ranges::none_of(shares, [&](const auto& of) { return of[part].second > 0; })) continue;
    std::vector<std::string> line = {shares.front()[part].first};
    std::ranges::replace(line.front(), '_', ' ');
    for (const auto& of : shares) line.push_back(fmt::format("{:.1f}", 100 * of[part].second));
    table.AddRow(line);
  }
  table.AddRow(steps);
  table.AddRow(joins);
  return fmt::format("\n{}", table.Markdown());
}

std::string PerSecond(double seconds_each) {
  return seconds_each > 0 ? console::FormatRate(2 / seconds_each / 1e9) + " Gop/s" : "any rate";
}

std::string Seconds(double seconds) { return fmt::format("{:.3g} s", seconds); }

std::string ByteRate(const bench::RestoreResult& result, double seconds) {
  return fmt::format("{:.2f} GB/s", static_cast<double>(result.bytes) / seconds / 1e9);
}

}  // namespace

std::string BenchText(const BenchReport& report) {
  std::string text = fmt::format("{}: {} of {} weights, kv {} in {}{}, {}\n",
                                 QuoteUnlessPlain(report.model), FormatBytes(report.weight_bytes),
                                 report.weights, report.result.tests.front().policy, report.kv_type,
                                 report.fill_kv ? " (filled)" : "", report.isa);
  for (const MachineResult& machine : report.result.machine) text += MachineText(machine);
  if (report.device) text += DeviceText(report);
  console::Table table({"<test", "threads", "t/s", "% of limit", "<limit", "<logits hash"});
  for (const TestResult& result : report.result.tests) {
    table.Add(result.test.Label(), result.test.threads,
              fmt::format("{:.2f} ± {:.2f}", Median(result.tokens_per_second),
                          StandardDeviation(result.tokens_per_second)),
              FractionText(result), LimitText(result), HashText(result));
  }
  text += fmt::format("\n{}", table.Markdown());
  text += ProfileText(report);
  for (const TestResult& result : report.result.tests) {
    if (!result.file_bytes_per_token) continue;
    text += fmt::format("\n{}: {} a token from the file\n", result.test.Label(),
                        FormatBytes(static_cast<int64_t>(*result.file_bytes_per_token)));
  }
  for (const TestResult& result : report.result.tests) {
    if (!result.attention_bus_bytes_per_token) continue;
    text += fmt::format("\n{}: {} a token over the bus for attention, with keys and values\n",
                        result.test.Label(),
                        FormatBytes(static_cast<int64_t>(*result.attention_bus_bytes_per_token)));
  }
  for (const TestResult& result : report.result.tests) {
    if (!result.ranks.empty()) text += RanksText(report, result);
  }
  double max_in_cache = 0;
  for (const TestResult& result : report.result.tests) {
    if (!result.fits_cache) continue;
    const double step = result.work_per_token * static_cast<double>(result.test.texts);
    max_in_cache = std::max(max_in_cache, step);
  }
  if (max_in_cache > 0) {
    text += fmt::format(
        "\n"
        "in cache: the {} that a step reads fit into the processor's cache of {}, so the limit of "
        "memory does not apply\n",
        FormatBytes(static_cast<int64_t>(max_in_cache)), FormatBytes(report.result.cache_bytes));
  }
  return text;
}

std::string BenchJson(const BenchReport& report) {
  Json json = Json::array();
  for (const TestResult& result : report.result.tests) json.push_back(TestJson(report, result));
  return console::JsonText(json);
}

std::string BenchCsv(const BenchReport& report) {
  Json rows = Json::array();
  for (const TestResult& result : report.result.tests) {
    Json& row = rows.emplace_back(TestJson(report, result));
    // One column holds the work of both kinds of test.
    row["work_per_token"] =
        (result.limit_kind == LimitKind::kMultiplyPeak ? kOperations : 1) * result.work_per_token;
    for (const char* key : {"operations_per_token", "bytes_per_token", "samples"}) row.erase(key);
  }
  return console::CsvText(rows);
}

namespace {

// The hosts' times over one network. refused: gets what cannot be read or shared so, and why.
console::Table RankTimeTable(const RankTimeReport& report, const bench::Network& network,
                             std::string& refused) {
  console::Table table({"<shared", "context", "hosts", "weights, GB", "read, s", "waiting, s",
                        "B/token/layer", "answer, ms/token", "B/token/layer"});
  const auto add = [&](const std::string& how, int64_t context, int64_t hosts, int64_t weight_bytes,
                       const bench::ContextTime& time) {
    table.Add(how, context, hosts, fmt::format("{:.2f}", static_cast<double>(weight_bytes) / 1e9),
              fmt::format("{:.1f}", time.read_seconds), fmt::format("{:.1f}", time.wait_seconds),
              fmt::format("{:.0f}", time.read_bytes),
              time.answer_seconds ? fmt::format("{:.1f}", 1e3 * *time.answer_seconds) : "-",
              fmt::format("{:.0f}", time.answer_bytes));
  };
  const int64_t all_bytes = LoadedBytes(report.tensors, report.storage);
  for (const std::string& prefill : report.prefills) {
    try {
      for (const int64_t context : report.contexts) {
        for (const int64_t hosts : report.hosts) {
          const auto time = bench::TimeOf(report.spec, report.layout, prefill, context,
                                          static_cast<int>(hosts), report.times, network);
          if (time) {
            add("text, " + prefill, context, hosts, all_bytes, *time);
          } else {
            table.Add("text, " + prefill, context, hosts, "", "too short", "", "", "", "");
          }
        }
      }
    } catch (const Error& error) {
      refused += fmt::format("\n{}: {}\n", prefill, error.what());
    }
  }
  for (const int64_t hosts : report.hosts) {
    try {
      for (const int64_t context : report.contexts) {
        const auto shared = bench::TimeOfSharedWeights(
            report.spec, report.tensors, report.storage, report.layout, context,
            report.chunk_tokens, static_cast<int>(hosts), report.times, network);
        add("weights", context, hosts, shared.weight_bytes, shared.time);
      }
    } catch (const Error& error) {
      refused += fmt::format("\n{}\n", error.what());
    }
  }
  return table;
}

}  // namespace

std::string RankTimeText(const RankTimeReport& report) {
  std::string text = fmt::format(
      "\n"
      "An estimate, not a measurement: hosts like this one, matrices at {}, attention at {} (fits "
      "the tests above within {:.1f} %)\n",
      PerSecond(report.times.per_matrix_multiply_add),
      PerSecond(report.times.per_attention_multiply_add), 100 * report.times.worst_error);
  std::string refused;
  for (const bench::Network& network : report.networks) {
    refused.clear();  // the same for each
    text += fmt::format("\nLinks of {:.3g} Gbit/s, {:.3g} us:\n\n",
                        network.bytes_per_second * 8 / 1e9, network.seconds * 1e6) +
            RankTimeTable(report, network, refused).Markdown();
  }
  return text + refused;
}

std::string RestoreText(std::span<const bench::RestoreResult> results) {
  console::Table table({"tokens", "size", "saved at", "disk read at", "opened in", "restored, cold",
                        "% of disk", "restored, warm", "first token, cold", "warm", "from memory",
                        "replayed"});
  for (const bench::RestoreResult& result : results) {
    table.Add(result.tokens, FormatBytes(result.bytes), ByteRate(result, result.save),
              ByteRate(result, result.disk), Seconds(result.open),
              ByteRate(result, result.restore_cold),
              fmt::format("{:.0f}", 100 * result.disk / result.restore_cold),
              ByteRate(result, result.restore_warm), Seconds(result.first_token_cold),
              Seconds(result.first_token_warm), Seconds(result.first_token_memory),
              result.replayed_tokens);
  }
  return fmt::format("\n{}", table.Markdown());
}

std::string RestoreJson(std::span<const bench::RestoreResult> results) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const bench::RestoreResult& result : results) {
    all.push_back({{"tokens", result.tokens},
                   {"bytes", result.bytes},
                   {"replayed_tokens", result.replayed_tokens},
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
