// Pages of a command and its flags, for --help, the man page and the completions. Also the look of
// help: entries of a name and a text, in columns, wrapped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace godwit::console {

struct FlagPage {
  std::string group;                 // the heading above it
  std::vector<std::string> names;    // the short ones first
  std::string value;                 // "N"; empty for a switch
  std::string help;                  // without the default
  std::string fallback;              // the default, for people; empty: none
  std::vector<std::string> choices;  // this and the rest: as in Flag
  bool is_verbs_own = false;
  bool takes_list = false;

  // "-n, --predict N"
  std::string Usage() const;
  // The help with the default in brackets.
  std::string Text() const;
};

struct CommandPage {
  std::string name;      // "eval tasks"
  std::string synopsis;  // "[-m MODEL] [flags]"
  std::string summary;
  std::vector<FlagPage> flags;
};

// The page as --help shows it, in lines of at most `columns`.
std::string HelpText(const CommandPage& page, size_t columns);

constexpr std::string_view kModelHelp =
    "MODEL is a GGUF file, a folder in Hugging Face's format, or ORG/NAME of a model that godwit "
    "pull downloaded. ORG/NAME:Q4_K_M chooses one of its GGUF files.";
constexpr std::string_view kEnvironmentHelp =
    "Every flag has an environment variable, such as GODWIT_TOP_K for --top-k; the command line "
    "wins. A flag with other meanings in other verbs, such as --samples, has a variable for each "
    "verb: GODWIT_RUN_SAMPLES.";

// The columns of help on standard output: the terminal's, limited to a length that is easy to read,
// or 80 in a file.
size_t HelpColumns();

// An entry: the text stands beside the name, from text_column on, or below a name that is too long.
constexpr size_t kFlagColumn = 30, kVerbColumn = 16;
std::string HelpEntry(std::string_view name, std::string_view text, size_t columns,
                      size_t text_column = kFlagColumn);

// A text for standard error. At a terminal it is wrapped between words to the width, unless it has
// line breaks of its own.
std::string WrapStatus(std::string_view text);

// Breaks `text` into lines of at most `columns`, all but the first indented. No newline at the end.
std::string Wrap(std::string_view text, size_t columns, size_t indent = 0);

}  // namespace godwit::console
