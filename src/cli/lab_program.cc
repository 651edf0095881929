#include "cli/lab_program.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/system/self.h"
#include "console/options/environment.h"
#include "console/pages.h"
#include "console/verbs.h"

namespace godwit::cli {
namespace {

// Whether the arguments ask for `inspect --activations`, also by its variable.
bool LooksAtActivations(std::span<const std::string> arguments) {
  constexpr std::string_view kFlag = "--activations";
  const char* variable = std::getenv(console::VariableName(kFlag).c_str());
  return (variable != nullptr && *variable != '\0') ||
         std::ranges::any_of(
             arguments, [&](const std::string& argument) { return argument.starts_with(kFlag); });
}

}  // namespace

bool AsksForHelp(const std::string& argument) {
  return argument == "--help" || argument == "-h" || argument == "help";
}

std::filesystem::path LabProgram() {
  const auto folder = ThisProgram().parent_path();
  const auto beside = folder / "godwit-lab";
  if (access(beside.c_str(), X_OK) == 0) return beside;
  const auto installed = (folder / GODWIT_INSTALLED_LAB).lexically_normal();
  return access(installed.c_str(), X_OK) == 0 ? installed : beside;
}

bool IsForLab(std::span<const std::string> arguments) {
  if (arguments.empty()) return false;
  if (AsksForHelp(arguments.front())) arguments = arguments.subspan(1);
  const console::Verb* verb = arguments.empty() ? nullptr : console::FindVerb(arguments.front());
  return verb != nullptr && verb->in_lab;
}

bool NeedsLab(std::span<const std::string> arguments) {
  if (IsForLab(arguments)) return true;
  if (arguments.empty() || std::ranges::any_of(arguments, AsksForHelp)) return false;
  const std::string& verb = arguments.front();
  return verb == "man" || verb == "completions" ||
         (verb == "inspect" && LooksAtActivations(arguments));
}

void ExecLab(std::span<const std::string> arguments) {
  const std::filesystem::path program = LabProgram();
  if (access(program.c_str(), F_OK) != 0) {
    Throw(ErrorKind::kUnsupported, "this needs the program godwit-lab, which is missing ({}): {}",
          program.native(), console::kHowToBuildTheLab);
  }
  // The first word is godwit's path, by which the lab finds it. "help bench" becomes "bench
  // --help".
  std::vector<std::string> words = {ThisProgram().native()};
  const bool help = AsksForHelp(arguments.front());
  words.insert(words.end(), arguments.begin() + (help ? 1 : 0), arguments.end());
  if (help) words.emplace_back("--help");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  Throw(ErrorKind::kIo, "cannot start {}: {}", program.native(),
        std::generic_category().message(errno));
}

}  // namespace godwit::cli
