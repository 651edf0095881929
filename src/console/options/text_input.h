// Text from the command line, files or standard input.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "console/options/command_line.h"
#include "console/options/input_files.h"

namespace godwit::console {

struct TextInput {
  std::optional<std::string> prompt;  // -p
  std::vector<std::string> files;     // -f, as ReadInputFiles takes them
  bool escape = false;                // -e
  bool lossy = false;                 // --lossy
};

// Adds -p and -f to the current group; only one may be given. what: "the text to continue".
void AddTextFlags(CommandLine& line, TextInput& input, const std::string& what);

// Adds -p and -f, which may be given together: -p stands behind the files.
void AddTextAndQuestionFlags(CommandLine& line, TextInput& input, const std::string& what);

void AddLossyFlag(CommandLine& line, bool& lossy);

// The text of one file; "-" is standard input. The text is always UTF-8, every byte unchanged; with
// `lossy`, bytes that are not UTF-8 become U+FFFD. Throws Error(kInput) for them without it, and
// for more than 1 GiB, Error(kIo) for a file that cannot be read.
std::string ReadInputFile(const std::string& path, bool lossy);

// The bytes of any file. Throws as ReadInputFile does, except for the UTF-8.
std::string ReadFileBytes(const std::string& path);

// The text of -p or of the files, joined in order. Without -p and -f it is standard input, unless
// that is a terminal. Throws Error(kInput) for no text at all. RequirePrompt also refuses an empty
// text, which nobody means: most tokenizers would put a BOS in its place.
std::string RequireText(const TextInput& input);
std::string RequirePrompt(const TextInput& input);

struct GivenTexts {
  std::vector<NamedText> files;  // -f, then standard input
  std::string prompt;            // -p
};

// The texts of a verb with both flags; throws as RequirePrompt does. takes_pipe: standard input is
// a text, too, unless it is a terminal or -f names it already. Standard input is also left out if
// it is a file that another program has begun to read; standard error says so.
GivenTexts RequireTexts(const TextInput& input, bool takes_pipe);

}  // namespace godwit::console
