// What there is to tell of a command and its flags: for --help, the man page and the completions.
#pragma once

#include <string>
#include <vector>

namespace godwit::console {

struct FlagPage {
  std::string group;                 // the title above it
  std::vector<std::string> names;    // the short ones first
  std::string value;                 // "N"; empty for a switch
  std::string help;                  // without the default
  std::string fallback;              // the default, for people; empty: none
  std::vector<std::string> choices;  // these two as in Flag
  bool is_verbs_own = false;

  // "-n, --predict N"
  std::string Usage() const;
  // The help and, in brackets, the default.
  std::string Text() const;
};

struct CommandPage {
  std::string name;      // "eval tasks"
  std::string synopsis;  // "[-m MODEL] [flags]"
  std::string summary;
  std::vector<FlagPage> flags;
};

// As --help shows it, in lines of at most `columns`.
std::string HelpText(const CommandPage& page, size_t columns);

}  // namespace godwit::console
