// What there is to tell of a command and its flags, for --help, the man page and the completions;
// and how help looks: entries of a name and a text, in columns, wrapped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace godwit::console {

struct FlagPage {
  std::string group;                 // the title above it
  std::vector<std::string> names;    // the short ones first
  std::string value;                 // "N"; empty for a switch
  std::string help;                  // without the default
  std::string fallback;              // the default, for people; empty: none
  std::vector<std::string> choices;  // this and what follows as in Flag
  bool is_verbs_own = false;
  bool takes_list = false;

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

constexpr std::string_view kModelHelp =
    "MODEL is a GGUF file, the folder of a Hugging Face model, or ORG/NAME of one that godwit "
    "pull has downloaded from there: ORG/NAME:Q4_K_M where that has several GGUF files.";
constexpr std::string_view kEnvironmentHelp =
    "Every flag is also an environment variable, --top-k for example GODWIT_TOP_K; the command "
    "line wins. What means something else in another command, as --samples does, has a variable "
    "that names its own: GODWIT_RUN_SAMPLES.";

// Of help on standard output: the terminal's, as far as lines of that length are good to read, and
// 80 in a file.
size_t HelpColumns();

// The text stands beside the name, from text_column on, or below where there is little room.
constexpr size_t kFlagColumn = 30, kVerbColumn = 16;
std::string HelpEntry(std::string_view name, std::string_view text, size_t columns,
                      size_t text_column = kFlagColumn);

// A sentence on standard error: in lines of the terminal's width, between words, if it is a
// terminal and the sentence has no lines of its own.
std::string WrapStatus(std::string_view text);

// `text` in lines of at most `columns`, those after the first indented. No newline at the end.
std::string Wrap(std::string_view text, size_t columns, size_t indent = 0);

}  // namespace godwit::console
