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

// Flags -p and -f, of which one may be given. what: "the text to continue". Adds to the current
// group.
void AddTextFlags(CommandLine& line, TextInput& input, const std::string& what);

// Flags -p and -f together: -p stands behind the files.
void AddTextAndQuestionFlags(CommandLine& line, TextInput& input, const std::string& what);

void AddLossyFlag(CommandLine& line, bool& lossy);

// One file, and "-" is standard input. Always UTF-8, every byte as it is; what is not UTF-8
// becomes U+FFFD with `lossy`. Throws Error(kInput) without it, and for more than 1 GiB, Error(kIo)
// for a file that cannot be read.
std::string ReadInputFile(const std::string& path, bool lossy);

// Bytes of a file, whatever they are; it throws the same errors but for the UTF-8.
std::string ReadFileBytes(const std::string& path);

// Files are one text, one behind the other. Where there is neither -p nor -f, standard input counts
// unless it is a terminal. Throws Error(kInput) for no text at all. RequirePrompt also refuses an
// empty text, which nobody means: most tokenizers would put a BOS in its place.
std::string RequireText(const TextInput& input);
std::string RequirePrompt(const TextInput& input);

struct GivenTexts {
  std::vector<NamedText> files;  // -f, then standard input
  std::string prompt;            // -p
};

// Texts of a verb with both flags; throws as RequirePrompt does. takes_pipe: standard input counts
// beside them, unless it is a terminal, -f names it already, or it is a file that another program
// has begun to read, which standard error says.
GivenTexts RequireTexts(const TextInput& input, bool takes_pipe);

}  // namespace godwit::console
