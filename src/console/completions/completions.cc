#include "console/completions/completions.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/quote.h"
#include "console/exit_code.h"
#include "console/options/command_line.h"
#include "console/terminal/output.h"
#include "console/verbs.h"

namespace godwit::console {

ValueKind KindOf(const FlagPage& flag) {
  if (flag.value.empty()) return ValueKind::kNone;
  if (!flag.choices.empty()) return ValueKind::kWords;
  if (flag.value.starts_with("FILE")) return ValueKind::kFile;
  if (flag.value.starts_with("FOLDER")) return ValueKind::kFolder;
  return flag.value.starts_with("MODEL") ? ValueKind::kModel : ValueKind::kOther;
}

std::vector<std::string> ValueWords(const FlagPage& flag) {
  std::vector<std::string> words;
  for (const std::string& choice : flag.choices) {
    const size_t colon = choice.find(':');
    words.push_back(colon == std::string::npos ? choice : choice.substr(0, colon + 1));
  }
  return words;
}

std::string SingleQuoted(std::string_view text, std::string_view quote) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string(quote) : std::string(1, c);
  return quoted + "'";
}

int Completions(std::span<const std::string> arguments) {
  constexpr std::pair<std::string_view, std::string (*)()> kShells[] = {
      {"bash", BashCompletion}, {"zsh", ZshCompletion}, {"fish", FishCompletion}};
  const bool shell = !arguments.empty() && !arguments.front().starts_with('-');
  CommandLine line(
      "completions", "bash | zsh | fish",
      "Prints a script that completes verbs, flags and values in a shell. For bash: source "
      "<(godwit completions bash) in ~/.bashrc. For zsh: godwit completions zsh into a file "
      "_godwit in a folder of $fpath. For fish: into ~/.config/fish/completions/godwit.fish.");
  line.Parse(arguments.subspan(shell ? 1 : 0));
  for (const auto& [name, script] : kShells) {
    if (!shell || arguments.front() != name) continue;
    WriteOutput(script());
    return kExitOk;
  }
  Throw(ErrorKind::kInput, "expected the name of a shell, bash, zsh or fish, found {}",
        shell ? Quote(arguments.front()) : "none");
}

}  // namespace godwit::console
