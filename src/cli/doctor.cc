// godwit doctor: what of this machine makes godwit slow, and the commands that change it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/doctor/examine.h"
#include "cli/options/cache_options.h"
#include "console/exit_code.h"
#include "console/options/command_line.h"
#include "console/options/help.h"
#include "console/terminal/format.h"
#include "console/terminal/json_output.h"
#include "console/terminal/output.h"
#include "godwit/version.h"

namespace godwit::cli {
namespace {

struct DoctorOptions {
  CacheOptions cache;
  bool json = false;
};

DoctorOptions ParseDoctor(std::span<const std::string> arguments) {
  std::vector<std::string_view> names;
  for (const Check& check : AllChecks()) names.push_back(check.name);
  DoctorOptions options;
  console::CommandLine line(
      "doctor", "[flags]",
      fmt::format("Examines this machine, and says what would make godwit faster, with a command "
                  "for each advice. It changes nothing itself. The checks are: {}.",
                  fmt::join(names, ", ")));
  AddCacheFolderFlag(line, options.cache);
  line.Add({.names = "--json", .value = "", .help = "print one JSON object"}, options.json);
  line.RefusePlot();
  line.Parse(arguments);
  // Without a home there is no folder, and the rest can be examined still.
  if (options.cache.folder.empty()) options.cache.folder = UserCacheFolderIfAny();
  return options;
}

void PrintJson(std::span<const Finding> findings, int64_t advice) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    nlohmann::ordered_json check = {{"check", AllChecks()[i].name},
                                    {"status", NameOf(finding.status)},
                                    {"finding", finding.text},
                                    {"command", nullptr}};
    if (!finding.command.empty()) check["command"] = finding.command;
    checks.push_back(std::move(check));
  }
  console::WriteJson(
      {{"godwit", GODWIT_VERSION}, {"advice", advice}, {"checks", std::move(checks)}});
}

void PrintText(std::span<const Finding> findings, int64_t advice) {
  constexpr size_t kNameColumn = 15;
  const size_t columns = console::HelpColumns();
  std::string text;
  for (size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    const bool is_good = finding.status == Finding::Status::kGood;
    text += console::HelpEntry(
        AllChecks()[i].name,
        (is_good ? "" : fmt::format("{}: ", NameOf(finding.status))) + finding.text, columns,
        kNameColumn);
    // A command is never broken, so that it can be copied.
    if (!finding.command.empty()) {
      text += fmt::format("{:{}}{}\n", "", kNameColumn + 2, finding.command);
    }
  }
  console::WriteOutput(fmt::format("{}\n{} of advice\n", text,
                                   advice == 0 ? "no piece" : console::Plural(advice, "piece")));
}

}  // namespace

int Doctor(std::span<const std::string> arguments) {
  const DoctorOptions options = ParseDoctor(arguments);
  const MachineFacts machine = ThisMachine(options.cache.folder);
  std::vector<Finding> findings;
  int64_t advice = 0;
  for (const Check& check : AllChecks()) {
    findings.push_back(check.examine(machine));
    if (findings.back().status == Finding::Status::kAdvice) ++advice;
  }
  options.json ? PrintJson(findings, advice) : PrintText(findings, advice);
  return console::kExitOk;
}

}  // namespace godwit::cli
